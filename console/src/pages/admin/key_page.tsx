/** One key: what it may, where its budgets stand, and its end. */
import { Button, Group, Select } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { call } from "../../api/call";
import type { IssuedKey, Key } from "../../api/shapes";
import { Identifier } from "../../parts/code_block";
import { ConfirmButton } from "../../parts/confirm";
import { ErrorNotice } from "../../parts/error_notice";
import { BackTo, Facts, Panel } from "../../parts/facts";
import { Page, PageLoading } from "../../parts/page";
import { SecretOnce } from "../../parts/secret_once";
import { StateBadge } from "../../parts/state_badge";
import { Ago } from "../../parts/time";
import { WORDS } from "../../vocabulary";
import { BudgetBars, SetBudget } from "./budget_panel";
import { FormModal } from "./form_modal";
import { bodyOf, KeyFields, wishOf } from "./key_form";
import { limitsLine } from "./limits_fields";

export function KeyPage({ id }: { id: string }) {
  const path = `/admin/v1/keys/${encodeURIComponent(id)}`;
  const key = useQuery({ queryKey: ["admin", "key", id], queryFn: ({ signal }) => call<Key>(path, { signal }) });
  if (key.data) return <Whole of={key.data} path={path} />;
  if (!key.error) return <PageLoading />;
  return (
    <Page title={WORDS.key} back={<BackTo to="/admin/keys">{WORDS.keys}</BackTo>}>
      <ErrorNotice error={key.error} onRetry={() => void key.refetch()} />
    </Page>
  );
}

function Whole({ of: key, path }: { of: Key; path: string }) {
  const name = key.name || key.public_id;
  return (
    <Page
      title={name}
      back={<BackTo to="/admin/keys">{WORDS.keys}</BackTo>}
      about={<StateBadge state={key.status} />}
      actions={<Actions of={key} path={path} />}
    >
      <div className="split">
        <div>
          <Panel title={WORDS.budgets}>
            <BudgetBars path={path} budgets={key.budgets} name={name} />
            <Group mt="md">
              <SetBudget path={path} name={name}>
                {WORDS.setABudget}
              </SetBudget>
            </Group>
          </Panel>
          <Panel title="Permissions">
            <Facts
              facts={[
                [WORDS.endpoints, key.endpoints.join(", ") || "everything"],
                [WORDS.models, key.models.length ? key.models.map((model) => <div key={model}>{model}</div>) : "all"],
                [WORDS.tags, key.tags.join(", ") || "none"],
                [WORDS.limits, limitsLine(key.limits) ?? "none"],
                [WORDS.contentLog, key.logs_content ? "on" : "off"],
              ]}
            />
          </Panel>
        </div>
        <div>
          <Panel title={WORDS.details}>
            <Facts
              facts={[
                ["Public id", <Identifier key="id" id={key.public_id} />],
                [
                  WORDS.account,
                  <Link key="account" href={`/admin/accounts/${key.account_id}`}>
                    {key.account}
                  </Link>,
                ],
                [WORDS.created, <Ago key="made" time={key.created_at} />],
                [WORDS.expires, key.expires_at ? <Ago key="ends" time={key.expires_at} /> : "never"],
                ["Revoked", key.revoked_at && <Ago key="revoked" time={key.revoked_at} />],
                [
                  "Lineage",
                  key.lineage !== key.public_id && (
                    <span key="lineage" className="mono">
                      {key.lineage}
                    </span>
                  ),
                ],
                [
                  "Replaced by",
                  key.replaced_by && (
                    <Link key="next" href={`/admin/keys/${key.replaced_by}`}>
                      {key.replaced_by}
                    </Link>
                  ),
                ],
              ]}
            />
          </Panel>
        </div>
      </div>
    </Page>
  );
}

const OVERLAPS = [
  { value: "0", label: "no time: revoke it now" },
  { value: "3600", label: "an hour" },
  { value: "86400", label: "a day" },
  { value: "604800", label: "a week" },
];

function Actions({ of: key, path }: { of: Key; path: string }) {
  const client = useQueryClient();
  const [changing, { open, close }] = useDisclosure(false);
  const [wish, setWish] = useState(() => wishOf(key));
  const [overlap, setOverlap] = useState("86400");
  const [issued, setIssued] = useState<IssuedKey | null>(null);
  const refresh = () => client.invalidateQueries({ queryKey: ["admin"] });
  const rotate = async () => {
    setIssued(await call<IssuedKey>(`${path}/rotate`, { body: { overlap_seconds: Number(overlap) } }));
    await refresh();
  };
  const revoke = async () => {
    await call(`${path}/revoke`, { method: "POST" });
    await refresh();
  };
  const save = async () => {
    await call(path, { method: "PATCH", body: bodyOf(wish) });
    await refresh();
  };
  const begin = () => {
    setWish(wishOf(key));
    open();
  };
  const isOver = key.status !== "active";
  return (
    <>
      <Button variant="default" onClick={begin} disabled={key.revoked_at !== null}>
        {WORDS.edit}
      </Button>
      <ConfirmButton
        label={WORDS.rotate}
        question="Replace this key?"
        deed="Replace it"
        disabled={isOver || key.replaced_by !== null}
        onConfirm={rotate}
      >
        You get a new key that shares the limits and budgets of this one.
        <Select
          mt="sm"
          label="The old key still works for"
          data={OVERLAPS}
          value={overlap}
          onChange={(value) => setOverlap(value ?? "86400")}
        />
      </ConfirmButton>
      <ConfirmButton
        label={WORDS.revoke}
        question="Revoke this key?"
        deed="Revoke permanently"
        disabled={key.revoked_at !== null}
        onConfirm={revoke}
      >
        Requests with this key are refused within a second. Running jobs finish. You cannot undo this.
      </ConfirmButton>
      <FormModal title="Edit key" opened={changing} onClose={close} deed="Save" onSubmit={save}>
        <KeyFields wish={wish} onChange={setWish} ends={key.expires_at} />
      </FormModal>
      <SecretOnce
        title={WORDS.newKey}
        secret={issued?.key ?? null}
        about="Replace the old key by this one wherever it is used."
        onClose={() => setIssued(null)}
      />
    </>
  );
}
