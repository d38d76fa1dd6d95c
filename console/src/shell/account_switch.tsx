/** The person who is signed in, their role, and the account in which they work. */
import { NativeSelect } from "@mantine/core";
import { enter, publicPart, type Session } from "../session";

export function AccountSwitch({ session }: { session: Session }) {
  const { person, account } = session;
  if (!person) return null;
  const chosen = account ? publicPart(account) : "";
  const role = person.accounts.find((each) => each.account_id === chosen)?.role;
  const title = [role, person.operator ? "operator" : null].filter(Boolean).join(", ");
  return (
    <div className="signed-in">
      <div className="whose" title={person.email}>
        {person.name || person.email}
      </div>
      <div className="whose">{title || "no role"}</div>
      {person.accounts.length > 1 && (
        <NativeSelect
          size="xs"
          aria-label="Account in use"
          value={chosen}
          data={person.accounts.map((each) => ({ value: each.account_id, label: each.account }))}
          onChange={(event) => enter(person, event.currentTarget.value)}
        />
      )}
    </div>
  );
}
