/** Limits that can be changed while servers run. */
import { Button, Modal, Stack, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import type { RunTimeSettings, SettingsLimit } from "../../../api/shapes";
import { DataTable } from "../../../parts/data_table";
import { capital, Prose } from "../../../parts/prose";
import { formatSeconds } from "../../../parts/time";
import { WORDS } from "../../../vocabulary";
import { type Proposal, Review } from "./review";

export function Limits({ settings }: { settings: RunTimeSettings }) {
  const [editing, setEditing] = useState<SettingsLimit | null>(null);
  const [proposal, setProposal] = useState<Proposal | null>(null);
  return (
    <section aria-label={WORDS.limits}>
      <h2 className="section-title">{WORDS.limits}</h2>
      <DataTable
        label={WORDS.limits}
        rows={settings.limits}
        rowKey={(limit) => limit.name}
        columns={[
          {
            title: "Setting",
            cell: (limit) => (
              <>
                <span className="mono limit-name">{limit.name}</span>
                <Text size="xs" c="dimmed">
                  <Prose text={capital(limit.description)} />
                </Text>
              </>
            ),
          },
          {
            title: "In use",
            end: true,
            cell: (limit) => (
              <>
                {say(limit.name, limit.value)}
                {limit.shadowed && (
                  <Text size="xs" c="dimmed">
                    {String(limit.run_time)} is shadowed
                  </Text>
                )}
              </>
            ),
          },
          { title: WORDS.origin, cell: (limit) => <span className="tag">{ORIGINS[limit.origin]}</span>, wide: true },
          {
            title: WORDS.action,
            bare: true,
            end: true,
            cell: (limit) =>
              limit.origin === "file" ? (
                <Text size="xs" c="dimmed">
                  read-only
                </Text>
              ) : (
                <Button
                  size="compact-sm"
                  variant="default"
                  aria-label={`${WORDS.edit} ${limit.name}`}
                  onClick={() => setEditing(limit)}
                >
                  {WORDS.edit}
                </Button>
              ),
          },
        ]}
      />
      <Modal
        opened={editing !== null}
        onClose={() => setEditing(null)}
        title={editing?.name}
        closeButtonProps={{ "aria-label": "Close" }}
      >
        {editing && (
          <LimitForm
            limit={editing}
            onReview={(value) => {
              setEditing(null);
              setProposal({
                title: `Change ${editing.name}`,
                change: { wish: { limits: { [editing.name]: value } } },
                base: settings.version,
              });
            }}
          />
        )}
      </Modal>
      <Review proposal={proposal} onClose={() => setProposal(null)} />
    </section>
  );
}

const UNITS = [
  ["d", 86_400],
  ["h", 3600],
  ["min", 60],
] as const;

/** A limit with its unit, which its name says: a time, or an amount of memory. */
function say(name: string, value: number | null): string {
  if (value === null) return "forever";
  if (value === 0) return "0";
  if (/_mb(_|$)/.test(name)) return `${value.toLocaleString("en")} MiB`;
  if (!/seconds|timeout|retention/.test(name)) return value.toLocaleString("en");
  const unit = UNITS.find(([, seconds]) => value >= seconds && value % seconds === 0);
  return unit ? `${value / unit[1]} ${unit[0]}` : formatSeconds(value);
}

const ORIGINS = { file: "from file", run_time: "set here", default: "default" };

function LimitForm({ limit, onReview }: { limit: SettingsLimit; onReview: (value: unknown) => void }) {
  const [text, setText] = useState(String(limit.run_time ?? limit.value ?? "forever"));
  const given = text.trim();
  return (
    <Stack gap="sm">
      <TextInput
        label={WORDS.value}
        description={`${capital(limit.description)}. A number, or a time such as 12h. Default: ${say(limit.name, limit.default)}.`}
        data-autofocus
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
      />
      <div className="deeds" style={{ justifyContent: "flex-end" }}>
        {limit.run_time !== null && (
          <Button variant="default" onClick={() => onReview(null)}>
            Back to the default
          </Button>
        )}
        <Button disabled={given === ""} onClick={() => onReview(/^-?\d+(\.\d+)?$/.test(given) ? Number(given) : given)}>
          {WORDS.showDifferences}
        </Button>
      </div>
    </Stack>
  );
}
