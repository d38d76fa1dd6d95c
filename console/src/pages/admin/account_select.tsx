import { Select } from "@mantine/core";
import { useAccounts } from "./questions";

/** One account, or all. */
export function AccountSelect({ value, onChange }: { value: string | null; onChange: (id: string | null) => void }) {
  const accounts = useAccounts();
  const known = (accounts.data ?? []).map(({ id, name }) => ({ value: id, label: name }));
  const chosen = value && !known.some((account) => account.value === value) ? [{ value, label: value }] : [];
  return (
    <Select
      aria-label="Account"
      placeholder="All accounts"
      data={[...known, ...chosen]}
      searchable
      clearable
      clearButtonProps={{ "aria-label": "All accounts" }}
      value={value}
      onChange={onChange}
      w={190}
    />
  );
}
