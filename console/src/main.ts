/** The first script: the page that the address names is fetched together with what it stands in, not after it. */
import "./styles";
import { codeOf, PAGE_CODE } from "./page_code";

const code = codeOf(location.pathname.replace(/^\/console/, ""));
if (code) PAGE_CODE[code]().catch(() => undefined); // the page that shows it tries again, and says so
void import("./start");
