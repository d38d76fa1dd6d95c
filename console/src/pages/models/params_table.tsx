import { Text } from "@mantine/core";
import type { Model } from "../../api/shapes";
import { DataTable } from "../../parts/data_table";
import { Prose } from "../../parts/prose";
import { WORDS } from "../../vocabulary";
import { type ParamRow, rowsOf } from "./schema_rows";

/** A model's params, as a person reads them. */
export function ParamsTable({ model }: { model: Model }) {
  const rows = rowsOf(model.params, model.defaults);
  if (rows.length === 0) {
    return (
      <Text size="sm" c="dimmed">
        This key cannot see the params. Use a key that may generate or read.
      </Text>
    );
  }
  return (
    <div className="params">
      <DataTable<ParamRow>
        label={WORDS.params}
        rows={rows}
        rowKey={(row) => row.name}
        columns={[
          { title: "Param", cell: (row) => <Name row={row} /> },
          { title: "Default", cell: (row) => row.fallback && <span className="mono">{row.fallback}</span>, wide: true },
          { title: "Meaning", cell: (row) => <Meaning row={row} /> },
        ]}
      />
    </div>
  );
}

function Name({ row }: { row: ParamRow }) {
  return (
    <>
      <span className="mono">{row.name}</span>
      <div className="param-type">
        {row.type}
        {row.required && ", required"}
      </div>
    </>
  );
}

function Meaning({ row }: { row: ParamRow }) {
  return (
    <>
      <Prose text={row.about} />
      {row.allowed && <div className="param-type">{row.allowed}</div>}
    </>
  );
}
