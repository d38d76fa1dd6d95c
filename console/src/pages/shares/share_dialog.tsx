/** Create a link to a job's outputs, and see or revoke those that exist. */
import {
  Anchor,
  Button,
  Checkbox,
  CopyButton,
  Group,
  SegmentedControl,
  Stack,
  Text,
  TextInput,
  Title,
} from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { call } from "../../api/call";
import { fetchPage } from "../../api/queries";
import type { Job, Share, ShareWithUrl } from "../../api/shapes";
import { ErrorNotice } from "../../parts/error_notice";
import { inputFile } from "../../parts/input_file";
import { Icon } from "../../shell/icons";
import { RevokeButton } from "./revoke_button";
import { formatEnd, LIVES } from "./share_words";
import "./shares.css";

export default function ShareDialog({ job }: { job: Job }) {
  const client = useQueryClient();
  const [life, setLife] = useState("604800");
  const [includeInput, setIncludeInput] = useState(false);
  const make = useMutation({
    mutationFn: () =>
      call<ShareWithUrl>(`/api/v1/jobs/${job.id}/shares`, {
        body: { expires_in: Number(life), include_input: includeInput },
      }),
    onSuccess: () => client.invalidateQueries({ queryKey: ["shares"] }),
  });
  const input = inputName(job);
  return (
    <Stack gap="md">
      <Text size="sm">Anyone with the link can view and download the output. They need no key and no account.</Text>
      <div>
        <Text size="sm" fw={550} mb={4} id="share-life">
          The link works for
        </Text>
        <SegmentedControl fullWidth data={LIVES} value={life} onChange={setLife} aria-labelledby="share-life" />
        <KeptNote job={job} seconds={Number(life)} />
      </div>
      {input && (
        <Checkbox
          label={`Also show ${input}`}
          checked={includeInput}
          onChange={(event) => setIncludeInput(event.currentTarget.checked)}
        />
      )}
      <Group>
        <Button
          variant={make.data ? "default" : "filled"}
          leftSection={<Icon name="share" size={16} />}
          loading={make.isPending}
          onClick={() => make.mutate()}
          data-autofocus
        >
          {make.data ? "Create another link" : "Create link"}
        </Button>
      </Group>
      {make.error && <ErrorNotice error={make.error} />}
      {make.data && <NewLink key={make.data.id} link={make.data} />}
      <Links job={job} />
    </Stack>
  );
}

/** Return what the input consists of, or null for a job without a prompt or picture. */
function inputName(job: Job): string | null {
  const prompt = job.input.prompt || job.input.text;
  const parts = [prompt ? "the prompt" : null, inputFile(job) ? "the input picture" : null];
  return parts.filter(Boolean).join(" and ") || null;
}

/** Says so if the job ends clearly before the chosen time. */
function KeptNote({ job, seconds }: { job: Job; seconds: number }) {
  if (!job.expires_at || Date.parse(job.expires_at) >= Date.now() + seconds * 900) return null;
  return (
    <Text size="xs" c="dimmed" mt={4}>
      The job is kept until {new Date(job.expires_at).toLocaleString()}. The link stops working then.
    </Text>
  );
}

function NewLink({ link }: { link: ShareWithUrl }) {
  return (
    <section aria-label="New link">
      <Group gap="xs" wrap="nowrap" align="flex-end">
        <TextInput
          label="Link"
          readOnly
          flex={1}
          value={link.url}
          onFocus={(event) => event.currentTarget.select()}
          classNames={{ input: "mono" }}
        />
        <CopyButton value={link.url} timeout={2000}>
          {({ copied, copy }) => (
            <Button leftSection={<Icon name={copied ? "check" : "copy"} size={16} />} onClick={copy}>
              {copied ? "Copied" : "Copy link"}
            </Button>
          )}
        </CopyButton>
      </Group>
      <Text size="sm" c="dimmed" mt={6}>
        Copy it now: the link is shown only once. It works until {new Date(link.expires_at).toLocaleString()}.{" "}
        <Anchor href={link.url} target="_blank" rel="noreferrer" underline="always" size="sm">
          Open it
        </Anchor>
      </Text>
    </section>
  );
}

function Links({ job }: { job: Job }) {
  const links = useQuery({
    queryKey: ["shares", "job", job.id],
    queryFn: ({ signal }) => fetchPage<Share>("/api/v1/shares", { job: job.id, limit: 100 }, signal),
  });
  if (links.error) return <ErrorNotice error={links.error} onRetry={() => void links.refetch()} />;
  if (!links.data || links.data.data.length === 0) return null;
  return (
    <section aria-label="Links to this job">
      <Title order={3} mb={4}>
        Links to this job
      </Title>
      <ul className="share-links">
        {links.data.data.map((link) => (
          <li key={link.id}>
            <span>
              {formatEnd(link.expires_at)}
              <span className="share-under">
                created {new Date(link.created_at).toLocaleString()}
                {link.include_input && " · shows the input"}
              </span>
            </span>
            <RevokeButton link={link} />
          </li>
        ))}
      </ul>
    </section>
  );
}
