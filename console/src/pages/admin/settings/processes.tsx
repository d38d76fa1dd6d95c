/** Servers and workers, and the version that each uses. */
import { Text } from "@mantine/core";
import type { RunTimeSettings } from "../../../api/shapes";
import { DataTable } from "../../../parts/data_table";
import { Ago } from "../../../parts/time";
import { WORDS } from "../../../vocabulary";

export function Processes({ settings }: { settings: RunTimeSettings }) {
  if (settings.processes.length === 0) return null;
  return (
    <section aria-label="Processes">
      <h2 className="section-title">Processes</h2>
      <DataTable
        label="Servers and workers"
        rows={settings.processes}
        rowKey={(each) => `${each.name} ${each.seen_at}`}
        columns={[
          { title: WORDS.name, cell: (each) => <span className="mono">{each.name}</span> },
          {
            title: WORDS.version,
            cell: (each) => (
              <>
                {each.version}
                {each.problem && (
                  <Text size="xs" c="red">
                    {each.problem}
                  </Text>
                )}
                {!each.problem && each.version < settings.version && (
                  <Text size="xs" c="dimmed">
                    not the newest yet
                  </Text>
                )}
              </>
            ),
          },
          { title: "Last seen", cell: (each) => <Ago time={each.seen_at} />, end: true },
        ]}
      />
    </section>
  );
}
