/** Actions on a job: cancel, run again, delete, and code to fetch it. */
import { Button, Modal, Switch, Text, Tooltip } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link, useLocation } from "wouter";
import { call } from "../../api/call";
import { useCancelJob, useModels } from "../../api/queries";
import type { Job } from "../../api/shapes";
import { CodeTabs } from "../../parts/code_tabs";
import { ConfirmButton } from "../../parts/confirm";
import { formatMoney } from "../../parts/money";
import { jobSamples } from "../../parts/samples/samples";
import { toast } from "../../parts/toasts";
import { Icon } from "../../shell/icons";
import { WORDS } from "../../vocabulary";
import { selectAddress } from "../compare/address";
import { EditButton } from "../playground/edit_button";
import { ShareButton } from "../shares/share_button";
import { rerunOf, withoutSeed } from "./rerun";

export function JobActions({ job }: { job: Job }) {
  return (
    <>
      <ShowCode job={job} />
      <EditButton job={job} />
      <Button
        component={Link}
        href={selectAddress([job.id], job.batch_id)}
        variant="default"
        leftSection={<Icon name="compare" size={16} />}
      >
        {WORDS.compare}
      </Button>
      <Rerun job={job} />
      <ShareButton job={job} />
      {job.done ? <Delete job={job} /> : <Cancel job={job} />}
    </>
  );
}

function ShowCode({ job }: { job: Job }) {
  const [opened, { open, close }] = useDisclosure(false);
  return (
    <>
      <Button variant="default" leftSection={<Icon name="code" size={16} />} onClick={open}>
        {WORDS.showCode}
      </Button>
      <Modal
        opened={opened}
        onClose={close}
        size="xl"
        title="Get this job by code"
        closeButtonProps={{ "aria-label": "Close" }}
      >
        <CodeTabs samples={jobSamples(location.origin, job.id)} label={WORDS.code} />
        <Text size="sm" c="dimmed" mt="sm">
          Set your key in the environment: <code className="mono">export PENSTOCK_API_KEY=psk_…</code>
        </Text>
      </Modal>
    </>
  );
}

function Rerun({ job }: { job: Job }) {
  const models = useModels();
  const [, navigate] = useLocation();
  const [otherSeed, setOtherSeed] = useState(false);
  const icon = <Icon name="refresh" size={16} />;
  if (!models.data) return null;
  const rerun = rerunOf(
    job,
    models.data.find((model) => model.id === job.model),
  );
  if ("reason" in rerun) {
    return (
      <Tooltip label={rerun.reason} multiline maw={320} events={{ hover: true, focus: true, touch: true }}>
        <Button
          variant="default"
          leftSection={icon}
          data-disabled
          aria-disabled="true"
          onClick={(e) => e.preventDefault()}
        >
          Run again
        </Button>
      </Tooltip>
    );
  }
  const send = async () => {
    const params = otherSeed ? withoutSeed(rerun.params) : rerun.params;
    const body = { model: job.model, input: [{ params }], client_ref: job.client_ref, metadata: job.metadata };
    const made = await call<Job>("/model/v1/generation", { body });
    toast("A new job was created with equal params.");
    navigate(`/jobs/${made.id}`);
  };
  return (
    <ConfirmButton
      label="Run again"
      question="Run this job again?"
      deed="Run"
      harmless
      leftSection={icon}
      onConfirm={send}
    >
      This creates a new job with equal params
      {job.client_ref ? ", client ref" : ""}
      {job.metadata ? ", metadata" : ""}.
      {job.cost.estimated !== null && ` It may cost about ${formatMoney(job.cost.estimated)}.`}
      {rerun.hasSeed && (
        <Switch
          mt="sm"
          label="Use another seed"
          description="An equal seed repeats the result, if the vendor supports it."
          checked={otherSeed}
          onChange={(event) => setOtherSeed(event.currentTarget.checked)}
        />
      )}
    </ConfirmButton>
  );
}

function Cancel({ job }: { job: Job }) {
  const cancel = useCancelJob();
  return (
    <ConfirmButton
      label={WORDS.cancel}
      question="Cancel this job?"
      deed="Cancel the job"
      disabled={job.status === "canceling"}
      leftSection={<Icon name="stop" size={16} />}
      onConfirm={() => cancel.mutateAsync(job.id)}
    >
      The vendor is asked to stop. If it cannot, the job continues and its result is kept.
    </ConfirmButton>
  );
}

function Delete({ job }: { job: Job }) {
  const client = useQueryClient();
  const [, navigate] = useLocation();
  const remove = async () => {
    await call(`/api/v1/jobs/${job.id}`, { method: "DELETE" });
    toast("The job was deleted.");
    navigate("/jobs");
    client.removeQueries({ queryKey: ["job", job.id] });
    await client.invalidateQueries({ queryKey: ["jobs"] });
  };
  return (
    <ConfirmButton
      label={WORDS.delete}
      question="Delete this job?"
      deed="Delete permanently"
      leftSection={<Icon name="trash" size={16} />}
      onConfirm={remove}
    >
      Its params, outputs, files and events are deleted permanently. Its cost stays in the usage.
    </ConfirmButton>
  );
}
