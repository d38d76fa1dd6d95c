/** Every page of the console, in the order of the menu. A page is a folder below pages/ whose file exports a component. */
import { type ComponentType, lazy } from "react";
import { PAGE_CODE } from "./page_code";
import type { Role } from "./session";
import type { IconName } from "./shell/icons";
import { WORDS } from "./vocabulary";

export interface PageEntry {
  /** Below /console; the page itself sees to what follows, such as /jobs/job_1. */
  path: string;
  title: string;
  icon: IconName;
  /** Kind of key that the page needs. */
  role: Role;
  /** Pressed after `g`. */
  shortcut: string;
  /** Endpoint that a person's role must allow for the page to be in the menu. */
  needs?: string;
  /** True: not for service keys. */
  isForPeople?: boolean;
  Component: ComponentType;
}

export const PAGES: PageEntry[] = [
  {
    path: "/playground",
    title: WORDS.playground,
    icon: "playground",
    role: "account",
    shortcut: "p",
    needs: "POST /model/v1/generation",
    Component: lazy(PAGE_CODE["/playground"]),
  },
  {
    path: "/jobs",
    title: WORDS.jobs,
    icon: "jobs",
    role: "account",
    shortcut: "j",
    needs: "GET /api/v1/jobs",
    Component: lazy(PAGE_CODE["/jobs"]),
  },
  {
    path: "/pipelines",
    title: WORDS.pipelines,
    icon: "pipelines",
    role: "account",
    shortcut: "i",
    needs: "GET /api/v1/pipelines",
    Component: lazy(PAGE_CODE["/pipelines"]),
  },
  {
    path: "/gallery",
    title: WORDS.gallery,
    icon: "image",
    role: "account",
    shortcut: "g",
    needs: "GET /api/v1/jobs",
    Component: lazy(PAGE_CODE["/gallery"]),
  },
  {
    path: "/shares",
    title: WORDS.sharedLinks,
    icon: "share",
    role: "account",
    shortcut: "h",
    needs: "GET /api/v1/shares",
    Component: lazy(PAGE_CODE["/shares"]),
  },
  {
    path: "/models",
    title: WORDS.models,
    icon: "models",
    role: "account",
    shortcut: "m",
    needs: "GET /api/v1/models",
    Component: lazy(PAGE_CODE["/models"]),
  },
  {
    path: "/connect",
    title: WORDS.connect,
    icon: "code",
    role: "account",
    shortcut: "c",
    Component: lazy(PAGE_CODE["/connect"]),
  },
  {
    path: "/usage",
    title: WORDS.usage,
    icon: "usage",
    role: "account",
    shortcut: "u",
    needs: "GET /api/v1/usage",
    Component: lazy(PAGE_CODE["/usage"]),
  },
  {
    path: "/webhooks",
    title: WORDS.webhooks,
    icon: "webhooks",
    role: "account",
    shortcut: "w",
    needs: "GET /api/v1/webhooks",
    Component: lazy(PAGE_CODE["/webhooks"]),
  },
  {
    path: "/my-keys",
    title: WORDS.myKeys,
    icon: "keys",
    role: "account",
    shortcut: "y",
    needs: "GET /api/v1/keys",
    isForPeople: true,
    Component: lazy(PAGE_CODE["/my-keys"]),
  },
  {
    path: "/my-sessions",
    title: WORDS.mySessions,
    icon: "leave",
    role: "account",
    shortcut: "f",
    isForPeople: true,
    Component: lazy(PAGE_CODE["/my-sessions"]),
  },
  {
    path: "/content",
    title: WORDS.contentLog,
    icon: "text",
    role: "account",
    shortcut: "n",
    needs: "GET /api/v1/content",
    isForPeople: true,
    Component: lazy(PAGE_CODE["/content"]),
  },
  {
    path: "/people",
    title: WORDS.people,
    icon: "accounts",
    role: "account",
    shortcut: "o",
    needs: "GET /api/v1/people",
    isForPeople: true,
    Component: lazy(PAGE_CODE["/people"]),
  },
  {
    path: "/admin/keys",
    title: WORDS.keys,
    icon: "keys",
    role: "admin",
    shortcut: "k",
    Component: lazy(PAGE_CODE["/admin/keys"]),
  },
  {
    path: "/admin/accounts",
    title: WORDS.accounts,
    icon: "accounts",
    role: "admin",
    shortcut: "a",
    Component: lazy(PAGE_CODE["/admin/accounts"]),
  },
  {
    path: "/admin/people",
    title: WORDS.allPeople,
    icon: "accounts",
    role: "admin",
    shortcut: "x",
    Component: lazy(PAGE_CODE["/admin/people"]),
  },
  {
    path: "/admin/budgets",
    title: WORDS.budgets,
    icon: "budgets",
    role: "admin",
    shortcut: "b",
    Component: lazy(PAGE_CODE["/admin/budgets"]),
  },
  {
    path: "/admin/ledger",
    title: WORDS.ledger,
    icon: "ledger",
    role: "admin",
    shortcut: "l",
    Component: lazy(PAGE_CODE["/admin/ledger"]),
  },
  {
    path: "/admin/usage",
    title: WORDS.allUsage,
    icon: "usage",
    role: "admin",
    shortcut: "s",
    Component: lazy(PAGE_CODE["/admin/usage"]),
  },
  {
    path: "/admin/vendors",
    title: WORDS.vendors,
    icon: "vendors",
    role: "admin",
    shortcut: "v",
    Component: lazy(PAGE_CODE["/admin/vendors"]),
  },
  {
    path: "/admin/routes",
    title: WORDS.modelRoutes,
    icon: "models",
    role: "admin",
    shortcut: "d",
    Component: lazy(PAGE_CODE["/admin/routes"]),
  },
  {
    path: "/admin/prices",
    title: WORDS.prices,
    icon: "budgets",
    role: "admin",
    shortcut: "r",
    Component: lazy(PAGE_CODE["/admin/prices"]),
  },
  {
    path: "/admin/settings",
    title: WORDS.settingsHistory,
    icon: "settings",
    role: "admin",
    shortcut: "e",
    Component: lazy(PAGE_CODE["/admin/settings"]),
  },
  {
    path: "/admin/audit",
    title: WORDS.auditLog,
    icon: "audit",
    role: "admin",
    shortcut: "t",
    Component: lazy(PAGE_CODE["/admin/audit"]),
  },
];
