import { Text } from "@mantine/core";
import { Link } from "wouter";
import type { SettingsVersion } from "../../../api/shapes";
import { DataTable } from "../../../parts/data_table";
import { EmptyState } from "../../../parts/empty_state";
import { Listing } from "../../../parts/listing";
import { useListPage } from "../../../parts/paging";
import { Ago } from "../../../parts/time";
import { WORDS } from "../../../vocabulary";
import { SETTINGS_KEY } from "./run_time";

export function VersionList({ newest }: { newest: number }) {
  const versions = useListPage<SettingsVersion>([...SETTINGS_KEY, "versions"], "/admin/v1/settings/versions");
  return (
    <Listing
      query={versions}
      empty={
        <EmptyState
          title="Nothing was changed yet"
          icon="audit"
          action={{ label: WORDS.addAVendor, to: "/admin/vendors/new" }}
        >
          The settings file alone counts. Add a vendor, and its first version appears here.
        </EmptyState>
      }
    >
      {(rows, stale) => (
        <DataTable
          label="Versions"
          rows={rows}
          stale={stale}
          rowKey={(each) => String(each.version)}
          columns={[
            {
              title: WORDS.version,
              cell: (each) => (
                <>
                  <Link href={`/admin/settings/${each.version}`}>Version {each.version}</Link>
                  {each.version === newest && (
                    <>
                      {" "}
                      <span className="tag">newest</span>
                    </>
                  )}
                </>
              ),
            },
            { title: WORDS.note, cell: (each) => <VersionNote version={each} /> },
            { title: WORDS.by, cell: (each) => each.actor, wide: true },
            { title: WORDS.when, cell: (each) => <Ago time={each.created_at} />, end: true },
          ]}
        />
      )}
    </Listing>
  );
}

function VersionNote({ version }: { version: SettingsVersion }) {
  return (
    <>
      {version.restored !== null && (
        <Text size="xs" c="dimmed">
          version {version.restored} again
        </Text>
      )}
      <span style={{ overflowWrap: "anywhere" }}>{version.note || (version.restored === null ? "–" : "")}</span>
    </>
  );
}
