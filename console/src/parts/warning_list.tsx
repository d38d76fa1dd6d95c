/** Warnings of a job, one below the other. */
import { List } from "@mantine/core";
import type { Job } from "../api/shapes";
import { Prose } from "./prose";

export function WarningList({ job }: { job: Job }) {
  return (
    <List size="sm" spacing={4}>
      {job.warnings.map((warning) => (
        <List.Item key={warning}>
          <Prose text={warning} />
        </List.Item>
      ))}
    </List>
  );
}
