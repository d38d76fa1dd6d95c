/** Our few icons: 20 units wide, drawn by one line. */
import type { ReactNode, SVGProps } from "react";

const SHAPES = {
  playground: <path d="M3 10h3l2-5 4 10 2-5h3" />,
  jobs: <path d="M4 5h12M4 10h12M4 15h7" />,
  models: <path d="m10 3 6 3.5v7L10 17l-6-3.5v-7zM4 6.5l6 3.5 6-3.5M10 10v7" />,
  usage: <path d="M4 16V9M8 16V5M12 16v-5M16 16V7" />,
  webhooks: <path d="M5 13a3 3 0 1 0 3 3h6a3 3 0 1 0-1-5L9.500 5M10 7a3 3 0 1 1 2.600-4.500" />,
  keys: <path d="M8 12a3.500 3.500 0 1 1 1.500 1.500L7 16H5v-2H4v-1.500zM13 7.500h.01" />,
  accounts: <path d="M10 9.500a3 3 0 1 0 0-6 3 3 0 0 0 0 6M4 17c.5-3.500 3-5 6-5s5.500 1.500 6 5" />,
  budgets: <path d="M3 6h14v9H3zM3 9h14M6 12.500h3" />,
  ledger: <path d="M5 3h11v14H5a2 2 0 0 1-2-2V5a2 2 0 0 1 2-2M7 3v14M10 7h3.500M10 10h3.500" />,
  vendors: <path d="M3 4h14v5H3zM3 11h14v5H3zM6 6.500h.01M6 13.500h.01M10 6.500h4M10 13.500h4" />,
  audit: <path d="M10 3a7 7 0 1 1-6.500 4.500M3 3v4.500h4.500M10 6.500V10l2.500 2" />,
  sun: (
    <path d="M10 6.500a3.500 3.500 0 1 0 0 7 3.500 3.500 0 0 0 0-7M10 2v1.500M10 16.500V18M2 10h1.500M16.500 10H18M4.500 4.500l1 1M14.500 14.500l1 1M15.500 4.500l-1 1M5.500 14.500l-1 1" />
  ),
  moon: <path d="M16 11.500A6.500 6.500 0 0 1 8.500 4 6.500 6.500 0 1 0 16 11.500z" />,
  auto: <path d="M10 3a7 7 0 1 0 0 14zM10 3a7 7 0 0 1 0 14" />,
  menu: <path d="M3 6h14M3 10h14M3 14h14" />,
  close: <path d="m5 5 10 10M15 5 5 15" />,
  copy: <path d="M7 7h9v9H7zM4 13V4h9" />,
  check: <path d="m4 10.500 4 4 8-9" />,
  download: <path d="M10 3v10M6 9.500l4 4 4-4M4 17h12" />,
  external: <path d="M11 4h5v5M16 4l-7 7M14 12v4H4V6h4" />,
  help: <path d="M7.500 7.500a2.500 2.500 0 1 1 3.500 2.300c-.7.300-1 .8-1 1.700M10 14.500h.01" />,
  leave: <path d="M8 4H4v12h4M9 10h8M14 7l3 3-3 3" />,
  plus: <path d="M10 4v12M4 10h12" />,
  trash: <path d="M4 6h12M8 6V4h4v2M5.500 6l.7 10h7.600l.7-10" />,
  send: <path d="M3 10 17 4l-4 13-3.500-5.500zM9.500 11.500 17 4" />,
  stop: <path d="M6 6h8v8H6z" />,
  code: <path d="m7 6-4 4 4 4M13 6l4 4-4 4" />,
  warning: <path d="M10 3 2.500 16h15zM10 8v4M10 14.200h.01" />,
  refresh: <path d="M16 10a6 6 0 1 1-2-4.500M16 3v3.500h-3.500" />,
  image: <path d="M3 4h14v12H3zM3 13l4-4 4 4 2-2 4 4M13 8h.01" />,
  video: <path d="M3 5h10v10H3zM13 9l4-2.500v7L13 11" />,
  chat: <path d="M3 4h14v9H9l-4 3.500V13H3z" />,
  sound: <path d="M3 8v4h3l4 3.500v-11L6 8zM13 7.500a3.500 3.500 0 0 1 0 5M15 5a7 7 0 0 1 0 10" />,
  text: <path d="M4 4h12M4 8h12M4 12h12M4 16h7" />,
  input: <path d="M3 10h9M8.500 6.500 12 10l-3.500 3.500M12 4h5v12h-5" />,
  pipelines: <path d="M3 3h5v5H3zM12 7.500h5v5h-5zM3 12h5v5H3zM8 5.500h2v9H8M10 10h2" />,
  share: (
    <path d="M7 11.500 13 15M13 5 7 8.500M5 12.500a2.500 2.500 0 1 0 0-5 2.500 2.500 0 0 0 0 5M15 6.500a2.500 2.500 0 1 0 0-5 2.500 2.500 0 0 0 0 5M15 18.500a2.500 2.500 0 1 0 0-5 2.500 2.500 0 0 0 0 5" />
  ),
  search: <path d="M9 4a5 5 0 1 0 0 10A5 5 0 0 0 9 4M12.800 12.800 17 17" />,
  compare: <path d="M3 4h6v12H3zM11 4h6v12h-6z" />,
  play: <path d="M6 4v12l10-6z" />,
  pause: <path d="M7 4v12M13 4v12" />,
  settings: <path d="M3 6h8M15 6h2M3 14h2M9 14h8M13 4v4M7 12v4" />,
} satisfies Record<string, ReactNode>;

export type IconName = keyof typeof SHAPES;

export function Icon({
  name,
  size = 18,
  ...rest
}: { name: IconName; size?: number } & Omit<SVGProps<SVGSVGElement>, "name">) {
  return (
    <svg
      width={size}
      height={size}
      viewBox="0 0 20 20"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.5"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
      focusable="false"
      {...rest}
    >
      {SHAPES[name]}
    </svg>
  );
}
