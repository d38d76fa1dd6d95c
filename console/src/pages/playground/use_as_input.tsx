/** A button on an output: choose the model that is to work from it, and open the playground with it filled in. */
import { ActionIcon, Button, Modal, Text, Tooltip } from "@mantine/core";
import { useState } from "react";
import { useLocation } from "wouter";
import { useModels } from "../../api/queries";
import type { Job, Model, Output } from "../../api/shapes";
import { FILE_WORDS, type FileKind, fileKindOfOutput, outputName } from "../../parts/file_kinds";
import { isPlayable, KINDS, kindOrder } from "../../parts/model_order";
import { Icon } from "../../shell/icons";
import { WORDS } from "../../vocabulary";
import { changeDrafts } from "./drafts";
import { type FileSlot, slotsOf, withFile } from "./file_slots";
import { words } from "./form_schema";
import "./use_as_input.css";

interface Props {
  job: Job;
  output: Output;
  /** Only its sign, for places with little room. */
  isBare?: boolean;
}

export function UseAsInput({ job, output, isBare }: Props) {
  const [isOpen, setOpen] = useState(false);
  const models = useModels();
  const kind = fileKindOfOutput(output);
  const takers = kind && models.data ? takersOf(models.data, kind) : [];
  if (!kind || takers.length === 0) return null;
  return (
    <>
      {isBare ? (
        <Tooltip label={WORDS.useAsInput}>
          <ActionIcon variant="default" aria-label={WORDS.useAsInput} onClick={() => setOpen(true)}>
            <Icon name="input" size={16} />
          </ActionIcon>
        </Tooltip>
      ) : (
        <Button
          variant="default"
          size="compact-sm"
          leftSection={<Icon name="input" size={15} />}
          onClick={() => setOpen(true)}
        >
          {WORDS.useAsInput}
        </Button>
      )}
      {isOpen && <Takers {...{ job, output, kind, takers }} onClose={() => setOpen(false)} />}
    </>
  );
}

interface Taker {
  model: Model;
  slots: FileSlot[];
}

/** Return the models with a param for files of this kind. */
function takersOf(models: Model[], kind: FileKind): Taker[] {
  const takers = models.filter(isPlayable).map((model) => ({
    model,
    slots: slotsOf(model).filter((slot) => slot.kinds.includes(kind)),
  }));
  return takers
    .filter(({ slots }) => slots.length > 0)
    .toSorted((a, b) => kindOrder(a.model.kind) - kindOrder(b.model.kind));
}

interface TakersProps {
  job: Job;
  output: Output;
  kind: FileKind;
  takers: Taker[];
  onClose: () => void;
}

function Takers({ job, output, kind, takers, onClose }: TakersProps) {
  const [, navigate] = useLocation();
  const open = (model: Model, slot: FileSlot, role: string | undefined) => {
    const file = { job: job.id, output: outputName(job.outputs, output), ...(role ? { role } : {}) };
    changeDrafts((drafts) => {
      const before = drafts.params[model.id] ?? {};
      const params = { ...before, [slot.name]: withFile(slot, before[slot.name], file) };
      return { model: model.id, kind: model.kind, params: { ...drafts.params, [model.id]: params } };
    });
    onClose();
    navigate(`/playground/${encodeURIComponent(model.id)}`);
  };
  return (
    <Modal
      opened
      onClose={onClose}
      size="lg"
      title={`Use this ${FILE_WORDS[kind]} as input`}
      closeButtonProps={{ "aria-label": "Close" }}
    >
      <Text size="sm" c="dimmed">
        Choose a model and what the {FILE_WORDS[kind]} is for. The playground opens with it filled in.
      </Text>
      <ul className="takers">
        {takers.map(({ model, slots }) => (
          <li key={model.id}>
            <div className="taker-model">
              <b>{model.title}</b>
              <span className="mono">
                {model.id} · {KINDS[model.kind] ?? model.kind}
              </span>
            </div>
            <div className="deeds">
              {slots.flatMap((slot) =>
                (slot.roles.length ? slot.roles : [undefined]).map((role) => (
                  <Button
                    key={`${slot.name} ${role}`}
                    size="compact-sm"
                    variant="default"
                    aria-label={`${words(role ?? slot.name)} of ${model.id}`}
                    onClick={() => open(model, slot, role)}
                  >
                    {words(role ?? slot.name)}
                  </Button>
                )),
              )}
            </div>
          </li>
        ))}
      </ul>
    </Modal>
  );
}
