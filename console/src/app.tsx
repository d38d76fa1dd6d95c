/** Show the shell and a page if signed in, else the sign-in form. */
import { lazy, Suspense } from "react";
import { Redirect, Route, Switch, useLocation } from "wouter";
import { PAGE_CODE } from "./page_code";
import { PAGES } from "./pages";
import { EmptyState } from "./parts/empty_state";
import { PageLoading } from "./parts/page";
import { isOpen, useSession } from "./session";
import { ErrorBoundary } from "./shell/error_boundary";
import { NoRole } from "./shell/no_role";
import { Shell } from "./shell/shell";
import { SignIn } from "./shell/sign_in";

/** Not in the menu: there is nothing to compare before jobs are chosen. */
const Compare = lazy(PAGE_CODE["/compare"]);

export function App() {
  const session = useSession();
  if (session.person && !session.account && !session.admin) return <NoRole person={session.person} />;
  if (!session.account && !session.admin) return <SignIn />;
  const home = session.account ? "/playground" : "/admin/keys";
  return (
    <Shell>
      <Boundary>
        <Suspense fallback={<PageLoading />}>
          <Switch>
            {PAGES.map(({ path, role, Component, ...page }) => (
              <Route key={path} path={`${path}/*?`}>
                {isOpen(session, { role, ...page }) ? <Component /> : <SignIn asked={role} />}
              </Route>
            ))}
            <Route path="/compare">{session.account ? <Compare /> : <SignIn asked="account" />}</Route>
            <Route path="/">
              <Redirect to={home} replace />
            </Route>
            {PAGES.filter(({ role }) => role === "admin").map(({ path }) => (
              <Route key={path} path={path.replace("/admin", "")}>
                <Redirect to={path} replace />
              </Route>
            ))}
            <Route>
              <EmptyState title="Page not found" icon="help" action={{ label: "Go to the start page", to: home }}>
                The address may be mistyped, or belong to a newer version of this server.
              </EmptyState>
            </Route>
          </Switch>
        </Suspense>
      </Boundary>
    </Shell>
  );
}

/** An error of one page ends with leaving it. */
function Boundary({ children }: { children: React.ReactNode }) {
  const [location] = useLocation();
  return <ErrorBoundary key={location.split("/").slice(0, 3).join("/")}>{children}</ErrorBoundary>;
}
