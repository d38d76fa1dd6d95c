/** Frame of every page: the menu, which is behind a button on a phone. */
import { Drawer, useMantineColorScheme } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { lazy, type ReactNode, Suspense, useEffect, useRef } from "react";
import { Link, useLocation } from "wouter";
import { useAccountFeed } from "../api/live";
import { useMenuOf } from "../api/person";
import { leave } from "../api/sign_in";
import { PAGES, type PageEntry } from "../pages";
import { isOpen, publicPart, useSession } from "../session";
import { AccountSwitch } from "./account_switch";
import { Icon, type IconName } from "./icons";
import { Mark } from "./mark";
import { useShortcuts } from "./shortcuts";

const Help = lazy(() => import("./help"));

export function Shell({ children }: { children: ReactNode }) {
  const [menu, setMenu] = useDisclosure(false);
  const [help, setHelp] = useDisclosure(false);
  const [location] = useLocation();
  const main = useRef<HTMLElement>(null);
  const current = PAGES.find((page) => isAt(page, location));
  useAccountFeed();
  useShortcuts(setHelp.open);
  useMoveTo(current?.path, main, setMenu.close);
  return (
    <>
      <a className="skip" href="#content">
        Skip to content
      </a>
      <div className="frame">
        <header className="topbar">
          <button type="button" className="rail-button" aria-label="Menu" aria-expanded={menu} onClick={setMenu.open}>
            <Icon name="menu" size={20} />
          </button>
          <Mark size={22} />
          <span>Penstock</span>
        </header>
        <aside className="rail" aria-label="Console">
          <Rail location={location} onHelp={setHelp.open} />
        </aside>
        <main className="content" id="content" tabIndex={-1} ref={main}>
          {children}
        </main>
      </div>
      <Drawer.Root opened={menu} onClose={setMenu.close} size={250} padding={0}>
        <Drawer.Overlay />
        <Drawer.Content aria-label="Menu">
          <div className="rail in-drawer">
            <Rail location={location} onHelp={setHelp.open} />
          </div>
        </Drawer.Content>
      </Drawer.Root>
      {help && (
        <Suspense>
          <Help opened onClose={setHelp.close} />
        </Suspense>
      )}
    </>
  );
}

function isAt(page: PageEntry, location: string): boolean {
  return location === page.path || location.startsWith(`${page.path}/`);
}

/** After navigation, move the focus to the content and close the drawer. */
function useMoveTo(path: string | undefined, main: React.RefObject<HTMLElement | null>, closeMenu: () => void): void {
  const before = useRef(path);
  useEffect(() => {
    if (before.current === path) return;
    before.current = path;
    closeMenu();
    window.scrollTo(0, 0);
    main.current?.focus({ preventScroll: true });
  }, [path, main, closeMenu]);
}

function Rail({ location, onHelp }: { location: string; onHelp: () => void }) {
  const session = useSession();
  const [, navigate] = useLocation();
  const goAway = () => void leave().finally(() => navigate("/"));
  const mayOpen = useMenuOf();
  const ours = PAGES.filter((page) => page.role === "account" && isOpen(session, page) && mayOpen(page));
  const administration = PAGES.filter((page) => page.role === "admin" && session.admin);
  return (
    <>
      <Link className="brand" href="/">
        <Mark />
        Penstock
      </Link>
      <AccountSwitch session={session} />
      <nav aria-label="Pages">
        {ours.length > 0 && <Links pages={ours} location={location} />}
        {administration.length > 0 && (
          <>
            <div className="rail-heading" id="administration">
              Administration
            </div>
            <Links pages={administration} location={location} labelledBy="administration" />
          </>
        )}
      </nav>
      <div className="rail-foot">
        <Scheme />
        <div style={{ display: "flex", flexWrap: "wrap" }}>
          <a className="rail-button" href="/docs" style={{ textDecoration: "none" }}>
            <Icon name="external" size={16} />
            Reference
          </a>
          <button type="button" className="rail-button" onClick={onHelp} aria-label="Keyboard shortcuts">
            <Icon name="help" size={16} />
          </button>
        </div>
        {!session.admin && !session.person && <OtherKey to="/admin/keys" label="Sign in as admin" icon="keys" />}
        {!session.account && !session.person && (
          <OtherKey to="/playground" label="Use an account's key" icon="accounts" />
        )}
        {session.account && !session.person && <div className="whose">{publicPart(session.account)}</div>}
        {session.admin && !session.person && <div className="whose">administrator</div>}
        <button type="button" className="rail-button" onClick={goAway}>
          <Icon name="leave" size={16} />
          Sign out
        </button>
      </div>
    </>
  );
}

/** A page that needs the other kind of key leads to a form for it; what is signed in stays. */
function OtherKey({ to, label, icon }: { to: string; label: string; icon: IconName }) {
  return (
    <Link className="rail-button" href={to} style={{ textDecoration: "none" }}>
      <Icon name={icon} size={16} />
      {label}
    </Link>
  );
}

function Links({ pages, location, labelledBy }: { pages: PageEntry[]; location: string; labelledBy?: string }) {
  return (
    <ul aria-labelledby={labelledBy}>
      {pages.map((page) => (
        <li key={page.path}>
          <Link className="rail-link" href={page.path} aria-current={isAt(page, location) ? "page" : undefined}>
            <Icon name={page.icon} />
            {page.title}
          </Link>
        </li>
      ))}
    </ul>
  );
}

const SCHEMES: { scheme: "light" | "dark" | "auto"; icon: IconName; label: string }[] = [
  { scheme: "light", icon: "sun", label: "Light" },
  { scheme: "dark", icon: "moon", label: "Dark" },
  { scheme: "auto", icon: "auto", label: "System" },
];

function Scheme() {
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset cannot be laid out as freely
    <div role="group" aria-label="Theme" style={{ display: "flex", gap: 2 }}>
      {SCHEMES.map(({ scheme, icon, label }) => (
        <button
          key={scheme}
          type="button"
          className="rail-button"
          aria-label={label}
          title={label}
          aria-pressed={colorScheme === scheme}
          onClick={() => setColorScheme(scheme)}
        >
          <Icon name={icon} size={16} />
        </button>
      ))}
    </div>
  );
}
