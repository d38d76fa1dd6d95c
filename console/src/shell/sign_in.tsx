/** Sign-in form for the key of an account or the administrator. */
import { Alert, Anchor, Button, PasswordInput, Stack, Text, Title } from "@mantine/core";
import { useDocumentTitle } from "@mantine/hooks";
import { type FormEvent, useState } from "react";
import { Link, useLocation } from "wouter";
import { call } from "../api/call";
import { addressOf, useWays } from "../api/sign_in";
import { PAGES } from "../pages";
import { ErrorNotice } from "../parts/error_notice";
import { keep, type Role, signOut, useSession } from "../session";
import { WORDS } from "../vocabulary";
import { Mark } from "./mark";

/** `asked`: a page needs this key too, and the rest is signed in already. */
export function SignIn({ asked }: { asked?: Role }) {
  useDocumentTitle("Sign in - Penstock");
  const form = <Ways asked={asked} />;
  if (asked) return <div style={{ maxWidth: 420, margin: "10vh auto" }}>{form}</div>;
  return (
    <div className="sign-in">
      <aside>
        <div className="brand" style={{ padding: 0 }}>
          <Mark size={32} />
          Penstock
        </div>
        <div className="pitch">
          <h2>One gateway to your models.</h2>
          <p>3D from pictures, video from words, and chat: one key, one body shape, one bill.</p>
        </div>
        <Water />
      </aside>
      <main>{form}</main>
    </div>
  );
}

/** The buttons of the providers, and the form for a key where the server accepts one. */
function Ways({ asked }: { asked: Role | undefined }) {
  const ways = useWays();
  const { notice, person } = useSession();
  const providers = person ? [] : (ways?.providers ?? []);
  if (providers.length === 0) return <KeyForm asked={asked} isFirst />;
  return (
    <Stack>
      <Title order={1}>Sign in</Title>
      {notice && <SignedOut notice={notice} />}
      {providers.map(({ name, title }) => (
        <Button key={name} component="a" href={addressOf(name)} size="md">
          Sign in with {title}
        </Button>
      ))}
      {ways?.keys && (
        <>
          <Text c="dimmed" ta="center">
            or
          </Text>
          <KeyForm asked={asked} />
        </>
      )}
    </Stack>
  );
}

function SignedOut({ notice }: { notice: string }) {
  return (
    <Alert className="notice" color="gate" title="You were signed out" role="status">
      {notice}
    </Alert>
  );
}

/** `isFirst`: the form is all there is, and has the heading. */
function KeyForm({ asked, isFirst = false }: { asked: Role | undefined; isFirst?: boolean }) {
  const { notice } = useSession();
  const [location, navigate] = useLocation();
  const [key, setKey] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      const role = await roleOf(key.trim());
      const page = PAGES.find((each) => `${location}/`.startsWith(`${each.path}/`));
      if (page && page.role !== role && page.role !== asked) navigate("/");
      keep(role, key.trim());
    } catch (caught) {
      setError(caught);
      setBusy(false);
    }
  };
  return (
    <form onSubmit={submit} aria-label="Sign in">
      <Stack>
        {isFirst && <Title order={1}>{asked ? `This page needs ${NAMES[asked]}` : "Sign in"}</Title>}
        {isFirst && notice && !error && <SignedOut notice={notice} />}
        <PasswordInput
          label={WORDS.key}
          description="The key of an account (psk_…) or of the administrator (psa_…). It stays in this tab until you close it."
          placeholder={asked === "admin" ? "psa_…" : "psk_…"}
          autoComplete="off"
          spellCheck={false}
          size="md"
          required
          withAsterisk={false}
          autoFocus={isFirst}
          value={key}
          onChange={(event) => setKey(event.currentTarget.value)}
          visibilityToggleButtonProps={{ "aria-label": "Show key" }}
        />
        {error !== null && <ErrorNotice error={error} />}
        <Button type="submit" size="md" variant={isFirst ? "filled" : "default"} loading={busy} disabled={!key.trim()}>
          Sign in
        </Button>
        <Text size="sm" c="dimmed">
          The server's first start prints both keys. <code className="mono">penstock key create</code> makes another for
          an account, <code className="mono">penstock key admin</code> a new one for the administrator. The{" "}
          <Anchor href="/docs" underline="always">
            reference
          </Anchor>{" "}
          needs none.
        </Text>
        {asked && (
          <>
            <Button variant="default" component={Link} href={asked === "admin" ? "/playground" : "/admin/keys"}>
              {asked === "admin" ? "Back to the playground" : "Back to administration"}
            </Button>
            <Button variant="subtle" onClick={() => signOut()}>
              {WORDS.signOut}
            </Button>
          </>
        )}
      </Stack>
    </form>
  );
}

const NAMES: Record<Role, string> = { account: "an account's key", admin: "the administrator's key" };

/** Ask the server for the kind of a key. */
async function roleOf(key: string): Promise<Role> {
  return (await call<{ kind: Role }>("/api/v1/key", { key })).kind;
}

function Water() {
  return (
    <svg className="water" viewBox="0 0 400 200" preserveAspectRatio="none" aria-hidden="true" fill="none">
      {[0, 1, 2, 3, 4, 5].map((line) => (
        <path
          key={line}
          d={`M-20 ${60 + line * 26}q35 ${-16 + line} 70 0t70 0 70 0 70 0 70 0 70 0 70 0`}
          stroke={line === 2 ? "#f2b441" : "#1f6f70"}
          strokeWidth={line === 2 ? 1.4 : 1.1}
          opacity={1 - line * 0.12}
        />
      ))}
    </svg>
  );
}
