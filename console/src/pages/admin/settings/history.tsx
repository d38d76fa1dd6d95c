/** Settings history: versions, processes, limits, and the way to and from a file. */
import { useRoute } from "wouter";
import { ErrorNotice } from "../../../parts/error_notice";
import { Page, PageLoading } from "../../../parts/page";
import { WORDS } from "../../../vocabulary";
import { FileTools } from "./file_tools";
import { Limits } from "./limits";
import { Processes } from "./processes";
import { useSettings } from "./run_time";
import { VersionList } from "./version_list";
import { VersionPage } from "./version_page";
import "./settings.css";

export default function SettingsHistory() {
  const [isOne, params] = useRoute("/admin/settings/:version");
  return isOne ? <VersionPage key={params.version} version={Number(params.version)} /> : <Overview />;
}

function Overview() {
  const settings = useSettings();
  if (settings.error) {
    return (
      <Page title={WORDS.settingsHistory}>
        <ErrorNotice error={settings.error} onRetry={() => void settings.refetch()} />
      </Page>
    );
  }
  if (!settings.data) return <PageLoading />;
  return (
    <Page
      title={WORDS.settingsHistory}
      about="Each change of vendors, models and limits is a version that can come back."
      actions={<FileTools settings={settings.data} />}
    >
      <div className="panels">
        <VersionList newest={settings.data.version} />
        <Processes settings={settings.data} />
        <Limits settings={settings.data} />
      </div>
    </Page>
  );
}
