/** The settings to a file, and from one. Secrets are placeholders in it. */
import { Button, FileButton } from "@mantine/core";
import { useState } from "react";
import { call } from "../../../api/call";
import type { RunTimeSettings, SettingsVersionDetail } from "../../../api/shapes";
import { toastError } from "../../../parts/toasts";
import { Icon } from "../../../shell/icons";
import { type Proposal, Review } from "./review";
import type { Wish } from "./run_time";

export function FileTools({ settings }: { settings: RunTimeSettings }) {
  const [proposal, setProposal] = useState<Proposal | null>(null);
  const read = async (file: File | null) => {
    if (!file) return;
    try {
      setProposal({
        title: `Import ${file.name}?`,
        about: "The file takes the place of all vendors, models and limits that were added here.",
        change: { replace: partsOf(JSON.parse(await file.text())) },
        base: settings.version,
        deed: "Import",
      });
    } catch {
      toastError(new Error(`${file.name} is not an export of settings in JSON.`), "The file was not read");
    }
  };
  return (
    <>
      <FileButton accept="application/json,.json" onChange={read}>
        {(props) => (
          <Button {...props} variant="default">
            Import a file
          </Button>
        )}
      </FileButton>
      <Button
        variant="default"
        leftSection={<Icon name="download" size={16} />}
        disabled={settings.version === 0}
        onClick={() => download(settings.version).catch(toastError)}
      >
        Export
      </Button>
      <Review proposal={proposal} onClose={() => setProposal(null)} />
    </>
  );
}

function partsOf(found: unknown): Wish {
  if (typeof found !== "object" || found === null || Array.isArray(found)) throw new TypeError();
  const { vendors, models, limits } = found as Wish;
  return { vendors: vendors ?? {}, models: models ?? {}, limits: limits ?? {} };
}

async function download(version: number): Promise<void> {
  const found = await call<SettingsVersionDetail>(`/admin/v1/settings/versions/${version}`);
  const { vendors, models, limits } = found;
  const text = `${JSON.stringify({ version, vendors, models, limits }, null, 2)}\n`;
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  link.download = `penstock-settings-${version}.json`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
