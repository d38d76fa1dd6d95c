/** Options of a vendor that was added here, changed after a look at the differences. */
import { Button, Group, Modal, Stack } from "@mantine/core";
import { useState } from "react";
import type { SettingsEntry, VendorType } from "../../../api/shapes";
import { WORDS } from "../../../vocabulary";
import { OptionFields } from "../settings/option_fields";
import type { Change, Options } from "../settings/run_time";
import { TestConnection } from "./connection";
import { rememberModels } from "./listed_models";

interface Props {
  entry: SettingsEntry;
  type: VendorType;
  opened: boolean;
  onClose: () => void;
  onReview: (change: Change) => void;
}

export function EditVendor({ entry, opened, onClose, ...rest }: Props) {
  return (
    <Modal
      opened={opened}
      onClose={onClose}
      title={`${WORDS.edit} ${entry.name}`}
      size="lg"
      closeButtonProps={{ "aria-label": "Close" }}
    >
      <Form entry={entry} onClose={onClose} {...rest} />
    </Modal>
  );
}

function Form({ entry, type, onClose, onReview }: Omit<Props, "opened">) {
  const [options, setOptions] = useState<Options>(() => {
    const { type: _, ...others } = entry.options;
    return others;
  });
  const table = { type: type.type, ...options };
  return (
    <Stack gap="md">
      <OptionFields kind={type} options={options} details={[]} onChange={setOptions} />
      <TestConnection
        name={entry.name}
        options={table}
        onTested={(found) => rememberModels(entry.name, found.models)}
      />
      <Group justify="flex-end" gap="xs">
        <Button variant="default" onClick={onClose}>
          {WORDS.cancel}
        </Button>
        <Button
          onClick={() => {
            onReview({ wish: { vendors: { [entry.name]: { ...table, enabled: entry.enabled } } } });
            onClose();
          }}
        >
          {WORDS.showDifferences}
        </Button>
      </Group>
    </Stack>
  );
}
