import { Select, type SelectProps } from "@mantine/core";
import { useState } from "react";
import { useAccount, useAccounts } from "./questions";

interface Props extends Pick<SelectProps, "label" | "placeholder" | "required" | "clearable"> {
  value: string | null;
  onChange: (id: string | null) => void;
  /** Only those that are not closed. */
  open?: boolean;
}

/** One account of any number: what is typed is looked for by the server. */
export function AccountSelect({ value, onChange, open = false, ...select }: Props) {
  const [typed, setTyped] = useState("");
  const chosen = useAccount(value).data;
  const isName = chosen?.name === typed;
  const found = useAccounts(isName ? "" : typed).data ?? [];
  const known = found.filter((account) => !open || account.closed_at === null);
  const all = chosen && !known.some((account) => account.id === chosen.id) ? [...known, chosen] : known;
  const unknown = value && !all.some((account) => account.id === value) ? [{ value, label: value }] : [];
  return (
    <Select
      aria-label={select.label ? undefined : "Account"}
      data={[...all.map(({ id, name }) => ({ value: id, label: name })), ...unknown]}
      searchable
      searchValue={typed}
      onSearchChange={setTyped}
      nothingFoundMessage="No matching account"
      clearButtonProps={{ "aria-label": "All accounts" }}
      value={value}
      onChange={onChange}
      {...(select.label ? {} : { w: 190 })}
      {...select}
    />
  );
}
