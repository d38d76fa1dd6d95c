/** An amount of USD: two digits, or as many as a small one needs. */
export function formatMoney(amount: string | number | null | undefined): string {
  if (amount === null || amount === undefined) return "unknown";
  const value = Number(amount);
  if (Number.isNaN(value)) return String(amount);
  const digits = value !== 0 && Math.abs(value) < 0.01 ? Math.min(9, 1 - Math.floor(Math.log10(Math.abs(value)))) : 2;
  const text = Math.abs(value).toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: digits });
  return `${value < 0 ? "−" : ""}$${text}`;
}

export function Money({ amount }: { amount: string | number | null | undefined }) {
  const exact = amount === null || amount === undefined ? "no price is known" : `${amount} USD`;
  return <span title={exact}>{formatMoney(amount)}</span>;
}
