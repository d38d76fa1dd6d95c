/** A raised gate between two posts, and what it lets through. */
export function Mark({ size = 26 }: { size?: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 32 32" aria-hidden="true" focusable="false">
      <path d="M5 4v24M27 4v24" stroke="var(--mark-post)" strokeWidth="2.6" strokeLinecap="round" />
      <rect x="9" y="4" width="14" height="11" rx="1.8" fill="var(--mark-gate)" />
      <path
        d="M9 20q3.500-2.600 7 0t7 0M9 26q3.500-2.600 7 0t7 0"
        fill="none"
        stroke="var(--mark-post)"
        strokeWidth="2.4"
        strokeLinecap="round"
      />
    </svg>
  );
}
