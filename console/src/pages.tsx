/** Every page of the console, in the order of the menu. A page is a folder below pages/ whose file exports a component. */
import { type ComponentType, lazy } from "react";
import { PAGE_CODE } from "./page_code";
import type { Role } from "./session";
import type { IconName } from "./shell/icons";

export interface PageEntry {
  /** Below /console; the page itself sees to what follows, such as /jobs/job_1. */
  path: string;
  title: string;
  icon: IconName;
  /** Kind of key that the page needs. */
  role: Role;
  /** Pressed after `g`. */
  shortcut: string;
  Component: ComponentType;
}

export const PAGES: PageEntry[] = [
  {
    path: "/playground",
    title: "Playground",
    icon: "playground",
    role: "account",
    shortcut: "p",
    Component: lazy(PAGE_CODE["/playground"]),
  },
  {
    path: "/jobs",
    title: "Jobs",
    icon: "jobs",
    role: "account",
    shortcut: "j",
    Component: lazy(PAGE_CODE["/jobs"]),
  },
  {
    path: "/gallery",
    title: "Gallery",
    icon: "image",
    role: "account",
    shortcut: "g",
    Component: lazy(PAGE_CODE["/gallery"]),
  },
  {
    path: "/shares",
    title: "Shared links",
    icon: "share",
    role: "account",
    shortcut: "h",
    Component: lazy(PAGE_CODE["/shares"]),
  },
  {
    path: "/models",
    title: "Models",
    icon: "models",
    role: "account",
    shortcut: "m",
    Component: lazy(PAGE_CODE["/models"]),
  },
  {
    path: "/usage",
    title: "Usage",
    icon: "usage",
    role: "account",
    shortcut: "u",
    Component: lazy(PAGE_CODE["/usage"]),
  },
  {
    path: "/webhooks",
    title: "Webhooks",
    icon: "webhooks",
    role: "account",
    shortcut: "w",
    Component: lazy(PAGE_CODE["/webhooks"]),
  },
  {
    path: "/admin/keys",
    title: "Keys",
    icon: "keys",
    role: "admin",
    shortcut: "k",
    Component: lazy(PAGE_CODE["/admin/keys"]),
  },
  {
    path: "/admin/accounts",
    title: "Accounts",
    icon: "accounts",
    role: "admin",
    shortcut: "a",
    Component: lazy(PAGE_CODE["/admin/accounts"]),
  },
  {
    path: "/admin/budgets",
    title: "Budgets",
    icon: "budgets",
    role: "admin",
    shortcut: "b",
    Component: lazy(PAGE_CODE["/admin/budgets"]),
  },
  {
    path: "/admin/ledger",
    title: "Ledger",
    icon: "ledger",
    role: "admin",
    shortcut: "l",
    Component: lazy(PAGE_CODE["/admin/ledger"]),
  },
  {
    path: "/admin/usage",
    title: "All usage",
    icon: "usage",
    role: "admin",
    shortcut: "s",
    Component: lazy(PAGE_CODE["/admin/usage"]),
  },
  {
    path: "/admin/vendors",
    title: "Vendors",
    icon: "vendors",
    role: "admin",
    shortcut: "v",
    Component: lazy(PAGE_CODE["/admin/vendors"]),
  },
  {
    path: "/admin/audit",
    title: "Audit log",
    icon: "audit",
    role: "admin",
    shortcut: "t",
    Component: lazy(PAGE_CODE["/admin/audit"]),
  },
];
