/** The account's stored pipelines. */
import { Anchor, Group, Title } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "wouter";
import { call } from "../../api/call";
import type { PipelineTemplate } from "../../api/shapes";
import { ConfirmButton } from "../../parts/confirm";
import { DataTable } from "../../parts/data_table";
import { Ago } from "../../parts/time";
import { toast } from "../../parts/toasts";
import { WORDS } from "../../vocabulary";

export function useTemplates() {
  return useQuery({
    queryKey: ["templates"],
    queryFn: async ({ signal }) =>
      (await call<{ data: PipelineTemplate[] }>("/api/v1/pipelines/templates", { signal })).data,
  });
}

export function TemplateList() {
  const templates = useTemplates();
  if (!templates.data?.length) return null;
  return (
    <section aria-label="Stored templates">
      <Title order={2} mt="xl" mb="sm">
        Templates
      </Title>
      <DataTable<PipelineTemplate>
        label="Templates"
        rows={templates.data}
        rowKey={(template) => template.name}
        columns={[
          { title: WORDS.name, cell: (template) => <Name template={template} /> },
          { title: "Version", cell: (template) => template.version, tight: true },
          { title: WORDS.steps, cell: ({ steps }) => steps.map((step) => String(step.name)).join(" → "), wide: true },
          { title: WORDS.created, cell: (template) => <Ago time={template.created_at} />, end: true, wide: true },
          { title: WORDS.action, cell: (template) => <Deeds template={template} />, bare: true, tight: true },
        ]}
      />
    </section>
  );
}

function Name({ template }: { template: PipelineTemplate }) {
  return (
    <>
      <Anchor component={Link} href={addressOfTemplate(template.name)} size="sm">
        {template.name}
      </Anchor>
      {template.description && <span className="pipeline-under">{template.description}</span>}
    </>
  );
}

export function addressOfTemplate(name: string, version?: number | null): string {
  return `/pipelines/new?template=${encodeURIComponent(name)}${version ? `&version=${version}` : ""}`;
}

function Deeds({ template }: { template: PipelineTemplate }) {
  const client = useQueryClient();
  const remove = async () => {
    await call(`/api/v1/pipelines/templates/${encodeURIComponent(template.name)}`, { method: "DELETE" });
    toast("The template was deleted.");
    await client.invalidateQueries({ queryKey: ["templates"] });
  };
  return (
    <Group gap="xs" wrap="nowrap">
      <ConfirmButton label={WORDS.delete} question={`Delete ${template.name}?`} size="compact-sm" onConfirm={remove}>
        All its versions are deleted. Pipelines that it made stay.
      </ConfirmButton>
    </Group>
  );
}
