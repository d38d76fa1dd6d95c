/** Store the steps of the editor under a name. */
import { Button, Group, Modal, Stack, Switch, TextInput } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { call } from "../../api/call";
import type { PipelineTemplate } from "../../api/shapes";
import { ErrorNotice } from "../../parts/error_notice";
import { toast } from "../../parts/toasts";
import { WORDS } from "../../vocabulary";
import type { Params } from "../playground/params_form";

interface Props {
  body: Record<string, unknown>;
  params: Params;
  name: string;
  onClose: () => void;
}

export function SaveTemplate({ body, params, name: given, onClose }: Props) {
  const client = useQueryClient();
  const [name, setName] = useState(given);
  const [description, setDescription] = useState("");
  const [withParams, setWithParams] = useState(true);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const save = async () => {
    setBusy(true);
    setError(null);
    try {
      const { steps, on_error } = body;
      const made = await call<PipelineTemplate>(`/api/v1/pipelines/templates/${encodeURIComponent(name.trim())}`, {
        method: "PUT",
        body: {
          steps,
          ...(on_error ? { on_error } : {}),
          ...(withParams ? { params } : {}),
          ...(description.trim() ? { description: description.trim() } : {}),
        },
      });
      toast(`Stored as ${made.name}, version ${made.version}.`);
      await client.invalidateQueries({ queryKey: ["templates"] });
      onClose();
    } catch (caught) {
      setError(caught);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Modal opened onClose={onClose} title={WORDS.saveAsTemplate} closeButtonProps={{ "aria-label": "Close" }}>
      <Stack
        component="form"
        gap="sm"
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        <TextInput
          label={WORDS.name}
          description="a letter, then letters, digits, _ and -. An existing name gets its next version."
          required
          data-autofocus
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
        />
        <TextInput
          label={WORDS.description}
          maxLength={500}
          value={description}
          onChange={(event) => setDescription(event.currentTarget.value)}
        />
        <Switch
          label="Keep the params as defaults"
          checked={withParams}
          onChange={(event) => setWithParams(event.currentTarget.checked)}
        />
        {error !== null && <ErrorNotice error={error} />}
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={onClose}>
            {WORDS.cancel}
          </Button>
          <Button type="submit" loading={busy} disabled={!name.trim()}>
            Save
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
