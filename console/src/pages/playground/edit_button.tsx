/** A button that opens a job in the playground. */
import { Button, type ButtonProps, Tooltip } from "@mantine/core";
import { useState } from "react";
import { useLocation } from "wouter";
import { useModels } from "../../api/queries";
import type { Job } from "../../api/shapes";
import { toastError } from "../../parts/toasts";
import { Icon } from "../../shell/icons";
import { editJob } from "./edit_job";

export function EditButton({ job, ...look }: { job: Job } & ButtonProps) {
  const models = useModels();
  const [, navigate] = useLocation();
  const [busy, setBusy] = useState(false);
  if (!models.data) return null;
  const model = models.data.find((each) => each.id === job.model);
  const icon = <Icon name="settings" size={16} />;
  if (!model) {
    const reason = "This key may not use the model, or the model was removed.";
    return (
      <Tooltip label={reason} multiline maw={320} events={{ hover: true, focus: true, touch: true }}>
        <Button variant="default" leftSection={icon} {...look} data-disabled aria-disabled="true">
          Edit and run
        </Button>
      </Tooltip>
    );
  }
  const open = async () => {
    setBusy(true);
    try {
      navigate(await editJob(job, model));
      document.getElementById("content")?.scrollIntoView();
    } catch (error) {
      toastError(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Button variant="default" leftSection={icon} {...look} loading={busy} onClick={() => void open()}>
      Edit and run
    </Button>
  );
}
