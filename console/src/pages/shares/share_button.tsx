import { Button, type ButtonProps, Modal } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { lazy, Suspense } from "react";
import type { Job } from "../../api/shapes";
import { PageLoading } from "../../parts/page";
import { Icon } from "../../shell/icons";

const ShareDialog = lazy(() => import("./share_dialog"));

/** Opens the links of a job. Only a job with outputs can be shared. */
export function ShareButton({ job, size = "sm" }: { job: Job; size?: NonNullable<ButtonProps["size"]> }) {
  const [opened, { open, close }] = useDisclosure(false);
  if (job.status !== "succeeded" || job.outputs.length === 0) return null;
  return (
    <>
      <Button variant="default" size={size} leftSection={<Icon name="share" size={15} />} onClick={open}>
        Share
      </Button>
      <Modal
        opened={opened}
        onClose={close}
        size="lg"
        title="Share the output"
        closeButtonProps={{ "aria-label": "Close" }}
      >
        <Suspense fallback={<PageLoading />}>
          <ShareDialog job={job} />
        </Suspense>
      </Modal>
    </>
  );
}
