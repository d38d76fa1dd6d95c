/** A dialog to choose an output of an own job. */
import { Button, Group, Loader, Modal, Text, UnstyledButton } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useState } from "react";
import { fetchPage } from "../../api/queries";
import type { Job, Output } from "../../api/shapes";
import { ErrorNotice } from "../../parts/error_notice";
import { type FileKind, fileKindOfOutput, kindWords, outputName } from "../../parts/file_kinds";
import { SearchField } from "../../parts/search_field";
import { Ago } from "../../parts/time";
import { Icon } from "../../shell/icons";
import { WORDS } from "../../vocabulary";
import { nameOf } from "../jobs/job_words";
import { OutputThumb } from "../jobs/thumbnail";
import type { FileValue } from "./file_slots";

const PAGE_SIZE = 30;

interface Props {
  kinds: FileKind[];
  onPick: (file: FileValue) => void;
  onClose: () => void;
}

export function OutputPicker({ kinds, onPick, onClose }: Props) {
  const [q, setQ] = useState("");
  const found = useInfiniteQuery({
    queryKey: ["jobs", "picker", q],
    queryFn: ({ signal, pageParam }) =>
      fetchPage<Job>("/api/v1/jobs", { status: "succeeded", limit: PAGE_SIZE, q, cursor: pageParam }, signal),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
  });
  const jobs = found.data?.pages.flatMap((page) => page.data) ?? [];
  const choices = jobs.flatMap((job) => choicesOf(job, kinds).map((output) => ({ job, output })));
  return (
    <Modal
      opened
      onClose={onClose}
      size="lg"
      title={`Choose a ${kindWords(kinds)} of your jobs`}
      closeButtonProps={{ "aria-label": "Close" }}
    >
      <SearchField
        label={WORDS.search}
        placeholder="Prompt, file name, id or ref"
        leftSection={<Icon name="search" size={15} />}
        maxLength={200}
        value={q}
        onSettle={(value) => setQ(value ?? "")}
      />
      {found.error && <ErrorNotice error={found.error} onRetry={() => void found.refetch()} />}
      {found.isPending && <Loader size="sm" type="dots" mt="md" aria-label={WORDS.loading} />}
      <ul className="output-choices" aria-label={WORDS.outputs}>
        {choices.map(({ job, output }) => (
          <li key={output.id}>
            <UnstyledButton
              className="output-choice"
              onClick={() => onPick({ job: job.id, output: outputName(job.outputs, output) })}
            >
              <span className="output-choice-media fit">
                <OutputThumb outputs={job.outputs} output={output} />
              </span>
              <span className="output-choice-name">{nameOf(job)}</span>
              <small>
                {output.role === "preview" && "preview · "}
                {job.model} · <Ago time={job.created_at} />
              </small>
            </UnstyledButton>
          </li>
        ))}
      </ul>
      {found.isSuccess && choices.length === 0 && (
        <Text size="sm" c="dimmed" mt="sm">
          {found.hasNextPage ? "None among the newest jobs." : `No ${kindWords(kinds)} was found.`}
        </Text>
      )}
      {found.hasNextPage && (
        <Group justify="center" mt="sm">
          <Button variant="default" loading={found.isFetchingNextPage} onClick={() => void found.fetchNextPage()}>
            Search older jobs
          </Button>
        </Group>
      )}
    </Modal>
  );
}

/** Outputs of these kinds; previews only where nothing else fits. */
function choicesOf(job: Job, kinds: FileKind[]): Output[] {
  const fitting = job.outputs.filter((output) => {
    const kind = fileKindOfOutput(output);
    return kind !== null && kinds.includes(kind);
  });
  const real = fitting.filter((output) => output.role !== "preview");
  return real.length ? real : fitting;
}
