/** Webhook deliveries of a job's events. */
import { Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { fetchPage } from "../../api/queries";
import type { Delivery, Job } from "../../api/shapes";
import { Deliveries } from "../../parts/deliveries";
import { ErrorNotice } from "../../parts/error_notice";

export function JobDeliveries({ job }: { job: Job }) {
  const deliveries = useQuery({
    queryKey: ["webhooks", "deliveries", job.id, job.done],
    queryFn: ({ signal }) => fetchPage<Delivery>("/api/v1/webhooks/deliveries", { job_id: job.id, limit: 50 }, signal),
  });
  if (deliveries.error) return <ErrorNotice error={deliveries.error} onRetry={() => void deliveries.refetch()} />;
  if (!deliveries.data) return null;
  if (deliveries.data.data.length === 0) {
    return (
      <Text size="sm" c="dimmed">
        No webhook received an event of this job.
      </Text>
    );
  }
  return <Deliveries deliveries={deliveries.data.data} />;
}
