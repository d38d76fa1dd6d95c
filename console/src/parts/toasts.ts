/** Short notices in the corner. */
import { notifications } from "@mantine/notifications";

const READABLE = {
  closeButtonProps: { "aria-label": "Close notification" },
  styles: { description: { color: "var(--mantine-color-text)" } },
};

export function toast(message: string, title?: string): void {
  notifications.show({ ...READABLE, message, title, color: "flume", autoClose: 4000 });
}

export function toastError(error: unknown, title = "Something went wrong"): void {
  const message = error instanceof Error ? error.message : String(error);
  notifications.show({ ...READABLE, message, title, color: "red", autoClose: 8000 });
}
