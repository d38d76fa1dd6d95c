/** Where the code of each page is, by the page's path. */
export const PAGE_CODE = {
  "/playground": () => import("./pages/playground/playground"),
  "/jobs": () => import("./pages/jobs/jobs"),
  "/pipelines": () => import("./pages/pipelines/pipelines"),
  "/gallery": () => import("./pages/gallery/gallery"),
  "/shares": () => import("./pages/shares/shares"),
  "/compare": () => import("./pages/compare/compare"),
  "/models": () => import("./pages/models/models"),
  "/connect": () => import("./pages/connect/connect"),
  "/usage": () => import("./pages/usage/usage"),
  "/webhooks": () => import("./pages/webhooks/webhooks"),
  "/my-keys": () => import("./pages/people/my_keys"),
  "/my-sessions": () => import("./pages/people/my_sessions"),
  "/content": () => import("./pages/content/content"),
  "/people": () => import("./pages/people/people"),
  "/admin/keys": () => import("./pages/admin/keys"),
  "/admin/accounts": () => import("./pages/admin/accounts"),
  "/admin/people": () => import("./pages/admin/people/people"),
  "/admin/budgets": () => import("./pages/admin/budgets"),
  "/admin/ledger": () => import("./pages/admin/ledger"),
  "/admin/usage": () => import("./pages/admin/all_usage"),
  "/admin/vendors": () => import("./pages/admin/vendors/vendors"),
  "/admin/routes": () => import("./pages/admin/routes/routes"),
  "/admin/prices": () => import("./pages/admin/prices/prices"),
  "/admin/settings": () => import("./pages/admin/settings/history"),
  "/admin/audit": () => import("./pages/admin/audit"),
};

export type PagePath = keyof typeof PAGE_CODE;

/** The page that an address below /console belongs to. */
export function codeOf(path: string): PagePath | undefined {
  return (Object.keys(PAGE_CODE) as PagePath[]).find((each) => path === each || path.startsWith(`${each}/`));
}
