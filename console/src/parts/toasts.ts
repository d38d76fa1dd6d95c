/** Short notices in the corner. */
import { notifications } from "@mantine/notifications";

export function toast(message: string, title?: string): void {
  notifications.show({ message, title, color: "flume", autoClose: 4000 });
}

export function toastError(error: unknown, title = "That did not work"): void {
  const message = error instanceof Error ? error.message : String(error);
  notifications.show({ message, title, color: "red", autoClose: 8000 });
}
