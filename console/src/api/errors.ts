import type { ErrorBody, ErrorDetail } from "./shapes";

/** Error answer of the server. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly type: string;
  readonly param: string | null;
  readonly details: ErrorDetail[];
  readonly suggestion: string | null;
  readonly requestId: string | null;
  readonly retryable: boolean;
  /** Seconds that the server asks to wait. */
  readonly retryAfter: number | null;
  /** The whole error as it came: some codes bring more, such as a budget's `spent` and `cap`. */
  readonly body: Record<string, unknown>;

  constructor(status: number, body: Partial<ErrorBody>, retryAfter: number | null = null) {
    super(body.message ?? `The server answered ${status}.`);
    this.name = "ApiError";
    this.status = status;
    this.code = body.code ?? "unknown";
    this.type = body.type ?? "unknown";
    this.param = body.param ?? null;
    this.details = body.details ?? [];
    this.suggestion = body.suggestion ?? null;
    this.requestId = body.request_id ?? null;
    this.retryable = body.retryable ?? false;
    this.retryAfter = retryAfter;
    this.body = body;
  }
}

/** The server could not be asked at all. */
export class Unreachable extends Error {
  constructor() {
    super("The server does not answer.");
    this.name = "Unreachable";
  }
}

/** An answer began and did not end. */
export class BrokenOff extends Error {
  constructor() {
    super("The connection broke. The part that arrived is kept.");
    this.name = "BrokenOff";
  }
}

export async function errorOf(response: Response): Promise<ApiError> {
  const wait = Number(response.headers.get("retry-after"));
  const body = await response.json().catch(() => null);
  return new ApiError(response.status, body?.error ?? {}, wait > 0 ? wait : null);
}
