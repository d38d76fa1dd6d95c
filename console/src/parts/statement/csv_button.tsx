import { Button } from "@mantine/core";
import { useState } from "react";
import { ask } from "../../api/call";
import { Icon } from "../../shell/icons";
import { toastError } from "../toasts";

/** The lines of a statement as a file for spreadsheets. A link could not send the key. */
export function CsvButton({ path, query }: { path: string; query: { from: string; to: string; by: string } }) {
  const [busy, setBusy] = useState(false);
  const save = async () => {
    setBusy(true);
    try {
      const response = await ask(path, { query: { ...query, format: "csv" } });
      const link = document.createElement("a");
      link.href = URL.createObjectURL(await response.blob());
      link.download = `usage-${query.from}-${query.to}.csv`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
    } catch (error) {
      toastError(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Button variant="default" size="xs" loading={busy} onClick={save} leftSection={<Icon name="download" size={15} />}>
      CSV
    </Button>
  );
}
