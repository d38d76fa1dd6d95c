/** A table in a card; on a phone the columns that matter less are left out. */
import { VisuallyHidden } from "@mantine/core";
import type { ReactNode } from "react";
import "./data_table.css";

export interface Column<Row> {
  title: string;
  cell: (row: Row) => ReactNode;
  /** Numbers stand at the right. */
  end?: boolean;
  /** As narrow as its content. */
  tight?: boolean;
  /** Its title is only read out. */
  bare?: boolean;
  /** Left out on a phone. */
  wide?: boolean;
}

interface Props<Row> {
  label: string;
  columns: Column<Row>[];
  rows: Row[];
  rowKey: (row: Row) => string;
  /** Cells of a last line, such as sums; one for each column. */
  foot?: ReactNode[];
  /** True while the rows are stale and new ones are loading. */
  stale?: boolean;
}

export function DataTable<Row>({ label, columns, rows, rowKey, foot, stale }: Props<Row>) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <section className={stale ? "card data data-stale" : "card data"} aria-label={label} tabIndex={0}>
      <table aria-label={label}>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.title} scope="col" {...marks(column)}>
                {column.bare ? <VisuallyHidden>{column.title}</VisuallyHidden> : column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={rowKey(row)}>
              {columns.map((column) => (
                <td key={column.title} {...marks(column)}>
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
        {foot && (
          <tfoot>
            <tr>
              {columns.map((column, index) => (
                <td key={column.title} {...marks(column)}>
                  {foot[index]}
                </td>
              ))}
            </tr>
          </tfoot>
        )}
      </table>
    </section>
  );
}

function marks<Row>({ end, tight, wide, bare }: Column<Row>) {
  return {
    "data-end": end || undefined,
    "data-tight": tight || undefined,
    "data-wide": wide || undefined,
    "data-bare": bare || undefined,
  };
}
