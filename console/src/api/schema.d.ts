export type paths = Record<string, never>;
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /**
         * AccountPage
         * @description A part of a list; pass `next_cursor` as `cursor` for the next.
         */
        AccountPage: {
            /**
             * Object
             * @constant
             */
            object: "list";
            /** Data */
            data: components["schemas"]["AccountRecord"][];
            /** Has More */
            has_more: boolean;
            /** Next Cursor */
            next_cursor: string | null;
        };
        /**
         * AccountRecord
         * @description Whom jobs, results and keys belong to.
         */
        AccountRecord: {
            /**
             * Object
             * @constant
             */
            object: "account";
            /** Id */
            id: string;
            /** Name */
            name: string;
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /**
             * Closed At
             * @description since when its keys are refused
             */
            closed_at: string | null;
            /** @description of all its keys together */
            limits: components["schemas"]["LimitsShape"];
            /** Budgets */
            budgets: components["schemas"]["BudgetShape"][];
            /**
             * Keys
             * @description how many of its keys are neither revoked nor expired
             */
            keys: number;
            /** @description its quota is null where that of the settings holds */
            storage: components["schemas"]["StorageShape"];
        };
        /**
         * Action
         * @description What was changed.
         * @enum {string}
         */
        Action: "account.created" | "account.renamed" | "account.limited" | "account.closed" | "account.reopened" | "key.created" | "key.changed" | "key.rotated" | "key.revoked" | "budget.set" | "budget.removed" | "ledger.refunded" | "ledger.released" | "ledger.settled" | "webhook.disabled";
        /**
         * AttemptShape
         * @description One order placed at a vendor.
         */
        AttemptShape: {
            /** Number */
            number: number;
            /** Vendor */
            vendor: string;
            /** Upstream Id */
            upstream_id: string | null;
            /**
             * Started At
             * Format: date-time
             */
            started_at: string;
            outcome: components["schemas"]["Outcome"] | null;
        };
        /**
         * AuditPage
         * @description A part of a list; pass `next_cursor` as `cursor` for the next.
         */
        AuditPage: {
            /**
             * Object
             * @constant
             */
            object: "list";
            /** Data */
            data: components["schemas"]["AuditRecord"][];
            /** Has More */
            has_more: boolean;
            /** Next Cursor */
            next_cursor: string | null;
        };
        /**
         * AuditRecord
         * @description One change that someone made.
         */
        AuditRecord: {
            /**
             * Object
             * @constant
             */
            object: "audit_entry";
            /** Id */
            id: string;
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /**
             * Actor
             * @description `admin`: over HTTP; `cli`: on the command line; `server`: at its first start
             */
            actor: string;
            action: components["schemas"]["Action"];
            /**
             * Subject
             * @description the account, key, job or completion
             */
            subject: string;
            /** Account Id */
            account_id: string | null;
            /**
             * Detail
             * @description what it was and is; never a secret
             */
            detail: {
                [key: string]: unknown;
            };
        };
        /**
         * Batch
         * @description Several jobs, accepted together.
         */
        Batch: {
            /**
             * Object
             * @constant
             */
            object: "generation.batch";
            /** Id */
            id: string;
            /** Jobs */
            jobs: components["schemas"]["JobRecord"][];
        };
        /**
         * BudgetNotice
         * @description A share of a budget is used.
         */
        BudgetNotice: {
            /**
             * Of
             * @enum {string}
             */
            of: "account" | "key";
            period: components["schemas"]["Period"];
            /** Time Zone */
            time_zone: string;
            /** Cap */
            cap: string;
            /** Spent */
            spent: string;
            /** Held */
            held: string;
            /** Left */
            left: string;
            /**
             * Resets At
             * @description when the next period begins; null for a total
             */
            resets_at: string | null;
            /**
             * Share
             * @description percent of the cap: 50, 80 or 100
             */
            share: number;
        };
        /**
         * BudgetShape
         * @description Where a budget stands; decimal strings of USD. `held` is reserved for what is under way.
         */
        BudgetShape: {
            /**
             * Of
             * @enum {string}
             */
            of: "account" | "key";
            period: components["schemas"]["Period"];
            /** Time Zone */
            time_zone: string;
            /** Cap */
            cap: string;
            /** Spent */
            spent: string;
            /** Held */
            held: string;
            /** Left */
            left: string;
            /**
             * Resets At
             * @description when the next period begins; null for a total
             */
            resets_at: string | null;
        };
        /**
         * ChatCompletion
         * @description OpenAI's completion; vendors may add fields.
         */
        ChatCompletion: {
            /** Id */
            id: string;
            /**
             * Object
             * @constant
             */
            object: "chat.completion";
            /** Created */
            created: number;
            /** Model */
            model: string;
            /** Choices */
            choices: {
                [key: string]: unknown;
            }[];
            /**
             * Usage
             * @default null
             */
            usage: {
                [key: string]: unknown;
            } | null;
        } & {
            [key: string]: unknown;
        };
        /**
         * ChatModel
         * @description A chat model, as OpenAI's clients know it.
         */
        ChatModel: {
            /** Id */
            id: string;
            /**
             * Object
             * @constant
             */
            object: "model";
            /** Created */
            created: number;
            /** Owned By */
            owned_by: string;
        };
        /**
         * ChatModelList
         * @description Every chat model that this key may use.
         */
        ChatModelList: {
            /**
             * Object
             * @constant
             */
            object: "list";
            /** Data */
            data: components["schemas"]["ChatModel"][];
        };
        /**
         * Cost
         * @description Decimal strings of USD; null where the price is not known.
         */
        Cost: {
            /** Estimated */
            estimated: string | null;
            /** Final */
            final: string | null;
            /**
             * Currency
             * @constant
             */
            currency: "USD";
        };
        /**
         * DeliveryAttempt
         * @description One time that it was sent, or could not be.
         */
        DeliveryAttempt: {
            /**
             * At
             * Format: date-time
             */
            at: string;
            /**
             * Status Code
             * @description null: there was no answer
             */
            status_code: number | null;
            /** Latency Ms */
            latency_ms: number;
            /**
             * Error
             * @description null: it was a success
             */
            error: string | null;
            /**
             * Response
             * @description the beginning of the answer, up to 1024 bytes
             */
            response: string;
        };
        /**
         * DeliveryPage
         * @description A part of a list; pass `next_cursor` as `cursor` for the next.
         */
        DeliveryPage: {
            /**
             * Object
             * @constant
             */
            object: "list";
            /** Data */
            data: components["schemas"]["DeliveryRecord"][];
            /** Has More */
            has_more: boolean;
            /** Next Cursor */
            next_cursor: string | null;
        };
        /**
         * DeliveryRecord
         * @description One event on its way to one address.
         */
        DeliveryRecord: {
            /** Id */
            id: string;
            /**
             * Object
             * @constant
             */
            object: "webhook.delivery";
            /**
             * Webhook Id
             * @description null: the job's own webhook
             */
            webhook_id: string | null;
            /** Url */
            url: string;
            /** Type */
            type: string;
            /**
             * Event Id
             * @description the `webhook-id` of every attempt
             */
            event_id: string;
            /** Job Id */
            job_id: string | null;
            /** Sequence */
            sequence: number;
            status: components["schemas"]["Status"];
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /** Next Attempt At */
            next_attempt_at: string | null;
            /** Finished At */
            finished_at: string | null;
            /**
             * Attempts
             * @description the last 20
             */
            attempts: components["schemas"]["DeliveryAttempt"][];
        };
        /**
         * DetailShape
         * @description One thing wrong with one field.
         */
        DetailShape: {
            /** Loc */
            loc: string;
            /** Message */
            message: string;
            /** Code */
            code: string;
        };
        /**
         * DryRun
         * @description What a request would do; nothing was created.
         */
        DryRun: {
            /**
             * Object
             * @constant
             */
            object: "generation.dry_run";
            /** Model */
            model: string;
            /**
             * Valid
             * @constant
             */
            valid: true;
            /** Input */
            input: {
                [key: string]: unknown;
            }[];
            cost: components["schemas"]["Cost"];
            /**
             * Budget Left
             * @description null: no budget is set
             */
            budget_left: string | null;
            expected_seconds: components["schemas"]["TypicalSeconds"] | null;
        };
        /**
         * Error
         * @description The body of every answer that is not a success.
         */
        Error: {
            error: components["schemas"]["ErrorBody"];
        };
        /**
         * ErrorBody
         * @description What went wrong, whether to try again, and what to do.
         */
        ErrorBody: {
            /** Message */
            message: string;
            /** Type */
            type: string;
            /** Code */
            code: string | null;
            /** Param */
            param: string | null;
            /** Details */
            details: components["schemas"]["DetailShape"][];
            /** Retryable */
            retryable: boolean;
            /** Charged */
            charged: boolean | null;
            /** Suggestion */
            suggestion: string | null;
            /** Request Id */
            request_id: string | null;
        };
        /**
         * EventRecord
         * @description Something that happened to a job or a budget, with that as it was then.
         */
        EventRecord: {
            /** Type */
            type: components["schemas"]["EventType"] | "budget.threshold";
            /** Id */
            id: string;
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /** Sequence */
            sequence: number;
            /** Data */
            data: components["schemas"]["JobRecord"] | components["schemas"]["BudgetNotice"];
        };
        /**
         * EventType
         * @description The closed set of events of jobs; the last four end a job.
         * @enum {string}
         */
        EventType: "job.queued" | "job.started" | "job.progress" | "job.succeeded" | "job.failed" | "job.canceled" | "job.expired";
        /**
         * Feed
         * @description Events in order; pass `next_after` as `after` for the next.
         */
        Feed: {
            /**
             * Object
             * @constant
             */
            object: "list";
            /** Data */
            data: components["schemas"]["EventRecord"][];
            /** Has More */
            has_more: boolean;
            /** Next After */
            next_after: string | null;
        };
        /**
         * FileRecord
         * @description An uploaded picture.
         */
        FileRecord: {
            /**
             * Object
             * @constant
             */
            object: "file";
            /** File Token */
            file_token: string;
            /** Sha256 */
            sha256: string;
            /** Bytes */
            bytes: number;
            /** Content Type */
            content_type: string;
            /** Width */
            width: number;
            /** Height */
            height: number;
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /** Expires At */
            expires_at: string | null;
        };
        /**
         * Group
         * @description What a report can tell apart.
         * @enum {string}
         */
        Group: "day" | "month" | "model" | "key" | "vendor" | "kind" | "account";
        /**
         * Health
         * @description The process is alive.
         */
        Health: {
            /**
             * Status
             * @constant
             */
            status: "ok";
            /** Version */
            version: string;
        };
        /**
         * IssuedKey
         * @description A new key. Its text is shown this once.
         */
        IssuedKey: {
            /**
             * Object
             * @constant
             */
            object: "key";
            /** Public Id */
            public_id: string;
            /**
             * Account
             * @description the account's name
             */
            account: string;
            /** Account Id */
            account_id: string;
            /** Name */
            name: string;
            /** Models */
            models: string[];
            /** Endpoints */
            endpoints: components["schemas"]["Scope"][];
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /** Expires At */
            expires_at: string | null;
            /** Revoked At */
            revoked_at: string | null;
            /**
             * Status
             * @description closed: its account is
             * @enum {string}
             */
            status: "active" | "expired" | "revoked" | "closed";
            /**
             * Lineage
             * @description the first of the keys that replaced each other; limits and budgets are theirs
             */
            lineage: string;
            /** Replaced By */
            replaced_by: string | null;
            limits: components["schemas"]["LimitsShape"];
            /**
             * Budgets
             * @description its own; its account may have others
             */
            budgets: components["schemas"]["BudgetShape"][];
            /** Key */
            key: string;
        };
        /**
         * JobErrorBody
         * @description Why a job failed, where it was, and what the vendor said.
         */
        JobErrorBody: {
            /** Message */
            message: string;
            /** Type */
            type: string;
            /** Code */
            code: string | null;
            /** Param */
            param: string | null;
            /** Details */
            details: components["schemas"]["DetailShape"][];
            /** Retryable */
            retryable: boolean;
            /** Charged */
            charged: boolean | null;
            /** Suggestion */
            suggestion: string | null;
            /** Request Id */
            request_id: string | null;
            /** Stage */
            stage: string;
            upstream: components["schemas"]["UpstreamShape"] | null;
        };
        /**
         * JobPage
         * @description A part of a list; pass `next_cursor` as `cursor` for the next.
         */
        JobPage: {
            /**
             * Object
             * @constant
             */
            object: "list";
            /** Data */
            data: components["schemas"]["JobRecord"][];
            /** Has More */
            has_more: boolean;
            /** Next Cursor */
            next_cursor: string | null;
        };
        /**
         * JobRecord
         * @description One generation. Loop on `done`.
         */
        JobRecord: {
            /** Id */
            id: string;
            /**
             * Object
             * @constant
             */
            object: "generation.job";
            /** Model */
            model: string;
            status: components["schemas"]["State"];
            /** Done */
            done: boolean;
            /**
             * Phase
             * @description finer truth inside a status; an open set
             */
            phase: string;
            /** Progress */
            progress: number;
            /** Queue Position */
            queue_position: number | null;
            /** Eta Seconds */
            eta_seconds: number | null;
            /** Poll After Ms */
            poll_after_ms: number | null;
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /** Started At */
            started_at: string | null;
            /** Finished At */
            finished_at: string | null;
            /** Expires At */
            expires_at: string | null;
            /**
             * Input
             * @description resolved params with defaults filled, and the file's digest
             */
            input: {
                [key: string]: unknown;
            };
            /** Seed */
            seed: number | null;
            /** Vendor */
            vendor: string;
            /** Outputs */
            outputs: components["schemas"]["OutputShape"][];
            error: components["schemas"]["JobErrorBody"] | null;
            /** Warnings */
            warnings: string[];
            /** Attempts */
            attempts: components["schemas"]["AttemptShape"][];
            cost: components["schemas"]["Cost"];
            /**
             * Charged
             * @description null until the job is done
             */
            charged: boolean | null;
            /** Client Ref */
            client_ref: string | null;
            /** Metadata */
            metadata: {
                [key: string]: string;
            } | null;
            /** Batch Id */
            batch_id: string | null;
            urls: components["schemas"]["JobUrls"];
            /** Request Id */
            request_id: string;
        };
        /**
         * JobUrls
         * @description Where to go from here.
         */
        JobUrls: {
            /** Self */
            self: string;
            /** Events */
            events: string;
            /** Cancel */
            cancel: string;
        };
        /**
         * KeyPage
         * @description A part of a list; pass `next_cursor` as `cursor` for the next.
         */
        KeyPage: {
            /**
             * Object
             * @constant
             */
            object: "list";
            /** Data */
            data: components["schemas"]["KeyRecord"][];
            /** Has More */
            has_more: boolean;
            /** Next Cursor */
            next_cursor: string | null;
        };
        /**
         * KeyRecord
         * @description A key, without its secret. An empty list of models or endpoints means all.
         */
        KeyRecord: {
            /**
             * Object
             * @constant
             */
            object: "key";
            /** Public Id */
            public_id: string;
            /**
             * Account
             * @description the account's name
             */
            account: string;
            /** Account Id */
            account_id: string;
            /** Name */
            name: string;
            /** Models */
            models: string[];
            /** Endpoints */
            endpoints: components["schemas"]["Scope"][];
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /** Expires At */
            expires_at: string | null;
            /** Revoked At */
            revoked_at: string | null;
            /**
             * Status
             * @description closed: its account is
             * @enum {string}
             */
            status: "active" | "expired" | "revoked" | "closed";
            /**
             * Lineage
             * @description the first of the keys that replaced each other; limits and budgets are theirs
             */
            lineage: string;
            /** Replaced By */
            replaced_by: string | null;
            limits: components["schemas"]["LimitsShape"];
            /**
             * Budgets
             * @description its own; its account may have others
             */
            budgets: components["schemas"]["BudgetShape"][];
        };
        /**
         * Kind
         * @description What an output is.
         * @enum {string}
         */
        Kind: "model" | "video" | "image";
        /**
         * LedgerEntry
         * @description One line of the ledger, which is never changed; amounts are decimal strings of USD.
         */
        LedgerEntry: {
            /**
             * Object
             * @constant
             */
            object: "ledger_entry";
            /**
             * Subject
             * @description the job or the chat request
             */
            subject: string;
            /**
             * Kind
             * @enum {string}
             */
            kind: "hold" | "settle" | "release" | "refund";
            /** Amount */
            amount: string;
            /**
             * Overrun
             * @description what it cost beyond what the budgets could bear: not charged
             */
            overrun: string;
            /**
             * Currency
             * @constant
             */
            currency: "USD";
            /** Account Id */
            account_id: string;
            /**
             * Key
             * @description the public id of the key that asked for it
             */
            key: string;
            /**
             * Accepted At
             * Format: date-time
             * @description when the subject was accepted: whose period it belongs to
             */
            accepted_at: string;
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /** Note */
            note: string;
        };
        /**
         * LedgerPage
         * @description A part of a list; pass `next_cursor` as `cursor` for the next.
         */
        LedgerPage: {
            /**
             * Object
             * @constant
             */
            object: "list";
            /** Data */
            data: components["schemas"]["LedgerEntry"][];
            /** Has More */
            has_more: boolean;
            /** Next Cursor */
            next_cursor: string | null;
        };
        /**
         * LimitsShape
         * @description How much may be done at once or in a minute; null: any number.
         */
        LimitsShape: {
            /** Requests Per Minute */
            requests_per_minute: number | null;
            /** Tokens Per Minute */
            tokens_per_minute: number | null;
            /** Concurrent Jobs */
            concurrent_jobs: number | null;
            /** Concurrent Streams */
            concurrent_streams: number | null;
        };
        /**
         * ModelList
         * @description Every model that this key may use.
         */
        ModelList: {
            /**
             * Object
             * @constant
             */
            object: "list";
            /** Data */
            data: components["schemas"]["ModelRecord"][];
        };
        /**
         * ModelRecord
         * @description A model on offer.
         */
        ModelRecord: {
            /** Id */
            id: string;
            /**
             * Object
             * @constant
             */
            object: "model";
            /** Kind */
            kind: string;
            /** Title */
            title: string;
            /**
             * Params
             * @description JSON Schema of `params`
             */
            params: {
                [key: string]: unknown;
            };
            /** Defaults */
            defaults: {
                [key: string]: unknown;
            };
            /**
             * Example
             * @description a whole request body
             */
            example: {
                [key: string]: unknown;
            };
            /**
             * Price
             * @description in force now, of several vendors the dearest in each part; null: not known
             */
            price: components["schemas"]["PriceShape"] | components["schemas"]["TokenPriceShape"] | null;
            /**
             * Prices
             * @description of each vendor, in force now and to come
             */
            prices: components["schemas"]["PriceTerm"][];
            /** Vendors */
            vendors: string[];
            /** @description null until it has run here */
            typical_seconds: components["schemas"]["TypicalSeconds"] | null;
        };
        /**
         * Outage
         * @description How long the store has not answered, and how much longer chat is served without it.
         */
        Outage: {
            /** Seconds */
            seconds: number;
            /** Seconds Left */
            seconds_left: number;
        };
        /**
         * Outcome
         * @description How an attempt at a vendor ended.
         * @enum {string}
         */
        Outcome: "succeeded" | "failed" | "refused" | "not_sent" | "never_arrived" | "unknown" | "canceled" | "abandoned";
        /**
         * OutputShape
         * @description One result; `url` is a signed link that needs no key until `url_expires_at`.
         */
        OutputShape: {
            /** Id */
            id: string;
            kind: components["schemas"]["Kind"];
            role: components["schemas"]["Role"];
            /** Content Type */
            content_type: string;
            /** Bytes */
            bytes: number;
            /** Sha256 */
            sha256: string;
            /** Width */
            width: number | null;
            /** Height */
            height: number | null;
            /** Duration Seconds */
            duration_seconds: number | null;
            /** Fps */
            fps: number | null;
            /** Faces */
            faces: number | null;
            /** Vertices */
            vertices: number | null;
            /** Url */
            url: string;
            /**
             * Url Expires At
             * Format: date-time
             */
            url_expires_at: string;
        };
        /**
         * Period
         * @description How long a budget's amount is for; `total` never begins anew.
         * @enum {string}
         */
        Period: "total" | "day" | "month";
        /**
         * PriceShape
         * @description Decimal strings of USD.
         */
        PriceShape: {
            /** Per Job */
            per_job: string;
            /** Per Second */
            per_second: string;
            /** Per Image */
            per_image: string;
            /** Per Thousand Faces */
            per_thousand_faces: string;
            /** Per Job If */
            per_job_if: {
                [key: string]: string;
            };
            /**
             * Seconds
             * @description what is counted where the params do not tell
             */
            seconds: number | null;
            /**
             * Faces
             * @description what is counted where `face_limit` is not given
             */
            faces: number | null;
            /**
             * Currency
             * @constant
             */
            currency: "USD";
        };
        /**
         * PriceTerm
         * @description What one vendor asks, and when.
         */
        PriceTerm: {
            /** Vendor */
            vendor: string;
            /**
             * From
             * @description null: it always was so
             */
            from: string | null;
            /**
             * Until
             * @description null: until further notice
             */
            until: string | null;
            /**
             * Price
             * @description null: not known
             */
            price: components["schemas"]["PriceShape"] | components["schemas"]["TokenPriceShape"] | null;
        };
        /**
         * Readiness
         * @description Whether requests are served, and why not.
         */
        Readiness: {
            /**
             * Status
             * @enum {string}
             */
            status: "ready" | "degraded" | "draining" | "unavailable";
            /** Version */
            version: string;
            /**
             * Settings
             * @description fingerprint of the settings in use
             */
            settings: string;
            /** Checks */
            checks: {
                [key: string]: string;
            };
            /**
             * @description present while the store does not answer
             * @default null
             */
            outage: components["schemas"]["Outage"] | null;
        };
        /**
         * Reason
         * @description Why an endpoint is disabled.
         * @enum {string}
         */
        Reason: "asked" | "gone" | "failing";
        /**
         * Role
         * @description What an output is for.
         * @enum {string}
         */
        Role: "primary" | "preview";
        /**
         * RouteError
         * @description What a route last failed with, since this process started or its settings changed.
         */
        RouteError: {
            /** Code */
            code: string | null;
            /** Message */
            message: string;
        };
        /**
         * RouteHealth
         * @description How a chat route does in the process that answers.
         */
        RouteHealth: {
            /**
             * State
             * @enum {string}
             */
            state: "open" | "resting" | "probing";
            /**
             * Failures
             * @description in a row
             */
            failures: number;
            /**
             * Rests Seconds
             * @description how long it is still left alone
             */
            rests_seconds: number;
            last_error: components["schemas"]["RouteError"] | null;
        };
        /**
         * RouteShape
         * @description One way to run a model.
         */
        RouteShape: {
            /** Model */
            model: string;
            /**
             * Upstream Model
             * @description the vendor's own name of it
             */
            upstream_model: string;
            /** Order */
            order: number;
            /** Weight */
            weight: number;
            /** @description null: the routes of jobs keep none */
            health: components["schemas"]["RouteHealth"] | null;
        };
        /**
         * Scope
         * @description What a key may do. `generate` includes following and deleting one's jobs; `read` only looks.
         * @enum {string}
         */
        Scope: "generate" | "chat" | "read";
        /**
         * ServerSentEvent
         * @description One event of a stream; `data` is the JSON of an EventRecord.
         */
        ServerSentEvent: {
            /** Id */
            id: string;
            /** Event */
            event: components["schemas"]["EventType"] | "budget.threshold";
            /** Data */
            data: string;
        };
        /**
         * Shape
         * @description Every field is always present; new ones may be added.
         */
        Shape: Record<string, never>;
        /**
         * State
         * @description Where a job stands. Clients need not know this list: they loop on `done`.
         * @enum {string}
         */
        State: "queued" | "running" | "canceling" | "succeeded" | "failed" | "canceled" | "expired";
        /**
         * Status
         * @description Where a delivery stands.
         * @enum {string}
         */
        Status: "pending" | "delivered" | "failed";
        /**
         * StorageShape
         * @description What an account keeps in files and assets, in bytes.
         */
        StorageShape: {
            /** Bytes */
            bytes: number;
            /** Quota */
            quota: number | null;
        };
        /**
         * TokenPriceShape
         * @description Decimal strings of USD.
         */
        TokenPriceShape: {
            /** Input Per Million */
            input_per_million: string;
            /** Cached Input Per Million */
            cached_input_per_million: string;
            /** Output Per Million */
            output_per_million: string;
            /** Reasoning Per Million */
            reasoning_per_million: string;
            /** Per Request */
            per_request: string;
            /**
             * Currency
             * @constant
             */
            currency: "USD";
        };
        /**
         * TypicalSeconds
         * @description How long such jobs took here: half are faster than `p50`, nine in ten than `p90`.
         */
        TypicalSeconds: {
            /** P50 */
            p50: number;
            /** P90 */
            p90: number;
            /** Jobs */
            jobs: number;
        };
        /**
         * UpstreamShape
         * @description What the vendor said, without its addresses and secrets.
         */
        UpstreamShape: {
            /** Code */
            code: string | null;
            /** Message */
            message: string | null;
            /** Id */
            id: string | null;
        };
        /**
         * UsageLine
         * @description What was used of one group; only the groups of `by` are present.
         */
        UsageLine: {
            /** Requests */
            requests: number;
            /** Jobs */
            jobs: number;
            /** Failed */
            failed: number;
            /** Prompt Tokens */
            prompt_tokens: number;
            /** Completion Tokens */
            completion_tokens: number;
            /**
             * Cached Tokens
             * @description among `prompt_tokens`
             */
            cached_tokens: number;
            /**
             * Reasoning Tokens
             * @description among `completion_tokens`
             */
            reasoning_tokens: number;
            /** Total Tokens */
            total_tokens: number;
            /**
             * Cost
             * @description decimal string of USD: what was charged
             */
            cost: string;
            /**
             * Estimated
             * @description how many requests' tokens are estimated, as the vendor did not tell them
             */
            estimated: number;
            /**
             * Unpriced
             * @description how many requests and jobs are not in `cost`, as their price is not known
             */
            unpriced: number;
            /**
             * Day
             * @default null
             */
            day: string | null;
            /**
             * Month
             * @description such as 2026-01
             * @default null
             */
            month: string | null;
            /**
             * Model
             * @default null
             */
            model: string | null;
            /**
             * Key
             * @description the key's public id
             * @default null
             */
            key: string | null;
            /**
             * Key Name
             * @default null
             */
            key_name: string | null;
            /**
             * Vendor
             * @default null
             */
            vendor: string | null;
            /**
             * Kind
             * @default null
             */
            kind: ("chat" | "job") | null;
            /**
             * Account
             * @description the account's name; for administrators
             * @default null
             */
            account: string | null;
            /**
             * Account Id
             * @default null
             */
            account_id: string | null;
        };
        /**
         * UsageStatement
         * @description What was used from the first to the last day, and where the budgets stand now.
         */
        UsageStatement: {
            /**
             * Object
             * @constant
             */
            object: "usage";
            /**
             * From
             * Format: date
             * @description the first day, UTC
             */
            from: string;
            /**
             * To
             * Format: date
             * @description the last day, UTC
             */
            to: string;
            /** By */
            by: components["schemas"]["Group"][];
            /**
             * Currency
             * @constant
             */
            currency: "USD";
            /** Data */
            data: components["schemas"]["UsageLine"][];
            total: components["schemas"]["UsageSums"];
            /** Budgets */
            budgets: components["schemas"]["BudgetShape"][];
            /** @description what is kept now; null for all accounts together */
            storage: components["schemas"]["StorageShape"] | null;
        };
        /**
         * UsageSums
         * @description What was used. `requests` are those of chat.
         */
        UsageSums: {
            /** Requests */
            requests: number;
            /** Jobs */
            jobs: number;
            /** Failed */
            failed: number;
            /** Prompt Tokens */
            prompt_tokens: number;
            /** Completion Tokens */
            completion_tokens: number;
            /**
             * Cached Tokens
             * @description among `prompt_tokens`
             */
            cached_tokens: number;
            /**
             * Reasoning Tokens
             * @description among `completion_tokens`
             */
            reasoning_tokens: number;
            /** Total Tokens */
            total_tokens: number;
            /**
             * Cost
             * @description decimal string of USD: what was charged
             */
            cost: string;
            /**
             * Estimated
             * @description how many requests' tokens are estimated, as the vendor did not tell them
             */
            estimated: number;
            /**
             * Unpriced
             * @description how many requests and jobs are not in `cost`, as their price is not known
             */
            unpriced: number;
        };
        /**
         * VendorError
         * @description What the vendor's latest failed job was told.
         */
        VendorError: {
            /**
             * At
             * Format: date-time
             */
            at: string;
            /** Model */
            model: string;
            /** Code */
            code: string;
            /** Message */
            message: string;
        };
        /**
         * VendorList
         * @description Every vendor that is configured or serves a model.
         */
        VendorList: {
            /**
             * Object
             * @constant
             */
            object: "list";
            /** Data */
            data: components["schemas"]["VendorRecord"][];
        };
        /**
         * VendorRecord
         * @description Who runs models.
         */
        VendorRecord: {
            /**
             * Object
             * @constant
             */
            object: "vendor";
            /** Name */
            name: string;
            /** Type */
            type: string;
            /**
             * Kind
             * @enum {string}
             */
            kind: "chat" | "media";
            /** Models */
            models: string[];
            /** Max Concurrent */
            max_concurrent: number;
            /** Jobs Queued */
            jobs_queued: number;
            /** Jobs Running */
            jobs_running: number;
            /** Routes */
            routes: components["schemas"]["RouteShape"][];
            /** @description of jobs that are still kept; of chat see the routes */
            last_error: components["schemas"]["VendorError"] | null;
        };
        /**
         * WebhookPage
         * @description A part of a list; pass `next_cursor` as `cursor` for the next.
         */
        WebhookPage: {
            /**
             * Object
             * @constant
             */
            object: "list";
            /** Data */
            data: components["schemas"]["WebhookRecord"][];
            /** Has More */
            has_more: boolean;
            /** Next Cursor */
            next_cursor: string | null;
        };
        /**
         * WebhookRecord
         * @description An address that is told of events.
         */
        WebhookRecord: {
            /** Id */
            id: string;
            /**
             * Object
             * @constant
             */
            object: "webhook";
            /** Url */
            url: string;
            /** Events */
            events: string[];
            /** Description */
            description: string;
            /** Disabled */
            disabled: boolean;
            /** Disabled At */
            disabled_at: string | null;
            /** @description asked for, answered 410, or failing for days */
            disabled_reason: components["schemas"]["Reason"] | null;
            /**
             * Failing Since
             * @description since when it only fails; null: the last attempt went well
             */
            failing_since: string | null;
            /**
             * Former Secret Until
             * @description until when messages are signed with the former secret too
             */
            former_secret_until: string | null;
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
        };
        /**
         * WebhookSecret
         * @description What signs the webhooks that jobs bring along.
         */
        WebhookSecret: {
            /**
             * Object
             * @constant
             */
            object: "webhook.secret";
            /** Secret */
            secret: string;
            /** Former Secret Until */
            former_secret_until: string | null;
        };
        /**
         * WebhookWithSecret
         * @description The same with its secret, which is shown this once.
         */
        WebhookWithSecret: {
            /** Id */
            id: string;
            /**
             * Object
             * @constant
             */
            object: "webhook";
            /** Url */
            url: string;
            /** Events */
            events: string[];
            /** Description */
            description: string;
            /** Disabled */
            disabled: boolean;
            /** Disabled At */
            disabled_at: string | null;
            /** @description asked for, answered 410, or failing for days */
            disabled_reason: components["schemas"]["Reason"] | null;
            /**
             * Failing Since
             * @description since when it only fails; null: the last attempt went well
             */
            failing_since: string | null;
            /**
             * Former Secret Until
             * @description until when messages are signed with the former secret too
             */
            former_secret_until: string | null;
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /**
             * Secret
             * @description `whsec_…`, for Standard Webhooks libraries
             */
            secret: string;
        };
        /**
         * AccountBody
         * @description A new account.
         * @example {
         *       "budgets": [
         *         {
         *           "cap": "50.00",
         *           "period": "month"
         *         }
         *       ],
         *       "limits": {
         *         "concurrent_jobs": 4
         *       },
         *       "name": "studio"
         *     }
         */
        AccountBody: {
            /**
             * @description default: none
             * @default null
             */
            limits: components["schemas"]["LimitsBody"] | null;
            /**
             * Budgets
             * @description one for each period; default: none
             * @default null
             */
            budgets: components["schemas"]["PeriodicBudget"][] | null;
            /**
             * Name
             * @description 1 to 200 printable characters that no other account has
             */
            name: string;
            /**
             * Storage Quota
             * @description bytes of files and assets it may keep; default: as the settings say
             * @default null
             */
            storage_quota: number | null;
        };
        /**
         * AccountPatch
         * @description What is to be changed of an account.
         * @example {
         *       "limits": {
         *         "requests_per_minute": 600,
         *         "tokens_per_minute": null
         *       }
         *     }
         */
        AccountPatch: {
            /**
             * Name
             * @description another name; its id stays
             * @default null
             */
            name: string | null;
            /**
             * @description those to change; null takes one away
             * @default null
             */
            limits: components["schemas"]["LimitsBody"] | null;
            /**
             * Storage Quota
             * @description bytes of files and assets it may keep; null: as the settings say
             * @default null
             */
            storage_quota: number | null;
            /**
             * Closed
             * @description true: its keys are refused; false: they work again
             * @default null
             */
            closed: boolean | null;
        };
        /**
         * BudgetBody
         * @description A hard cap of what may be spent in a period.
         * @example {
         *       "cap": "10.00",
         *       "time_zone": "Europe/Berlin"
         *     }
         */
        BudgetBody: {
            /**
             * Cap
             * @description USD, as a decimal string such as "10.00"
             */
            cap: string | number;
            /**
             * Time Zone
             * @description IANA name of the zone whose days and months count
             * @default UTC
             */
            time_zone: string;
        };
        /**
         * Budgeted
         * @description What may have limits and budgets from the first.
         */
        Budgeted: {
            /**
             * @description default: none
             * @default null
             */
            limits: components["schemas"]["LimitsBody"] | null;
            /**
             * Budgets
             * @description one for each period; default: none
             * @default null
             */
            budgets: components["schemas"]["PeriodicBudget"][] | null;
        };
        /**
         * KeyBody
         * @description A new key.
         * @example {
         *       "account": "studio",
         *       "budgets": [
         *         {
         *           "cap": "10.00",
         *           "period": "month"
         *         }
         *       ],
         *       "endpoints": [
         *         "chat"
         *       ],
         *       "name": "website"
         *     }
         */
        KeyBody: {
            /**
             * @description default: none
             * @default null
             */
            limits: components["schemas"]["LimitsBody"] | null;
            /**
             * Budgets
             * @description one for each period; default: none
             * @default null
             */
            budgets: components["schemas"]["PeriodicBudget"][] | null;
            /**
             * Name
             * @description what it is for, up to 200 printable characters
             * @default null
             */
            name: string | null;
            /**
             * Models
             * @description the models it may use; none or empty: all
             * @default null
             */
            models: string[] | null;
            /**
             * Endpoints
             * @description what it may do; none or empty: everything
             * @default null
             */
            endpoints: components["schemas"]["Scope"][] | null;
            /**
             * Expires At
             * @description when it ends; default: never
             * @default null
             */
            expires_at: string | null;
            /**
             * Expires In
             * @description the same in seconds from now; one of the two
             * @default null
             */
            expires_in: number | null;
            /**
             * Account
             * @description the account's id or name
             */
            account: string;
        };
        /**
         * KeyFields
         * @description What a key may be and do.
         */
        KeyFields: {
            /**
             * Name
             * @description what it is for, up to 200 printable characters
             * @default null
             */
            name: string | null;
            /**
             * Models
             * @description the models it may use; none or empty: all
             * @default null
             */
            models: string[] | null;
            /**
             * Endpoints
             * @description what it may do; none or empty: everything
             * @default null
             */
            endpoints: components["schemas"]["Scope"][] | null;
            /**
             * Expires At
             * @description when it ends; default: never
             * @default null
             */
            expires_at: string | null;
            /**
             * Expires In
             * @description the same in seconds from now; one of the two
             * @default null
             */
            expires_in: number | null;
        };
        /**
         * KeyPatch
         * @description What is to be changed of a key; null takes away what is there.
         * @example {
         *       "limits": {
         *         "concurrent_jobs": 2
         *       },
         *       "models": [
         *         "vendorb_video_31"
         *       ]
         *     }
         */
        KeyPatch: {
            /**
             * Name
             * @description what it is for, up to 200 printable characters
             * @default null
             */
            name: string | null;
            /**
             * Models
             * @description the models it may use; none or empty: all
             * @default null
             */
            models: string[] | null;
            /**
             * Endpoints
             * @description what it may do; none or empty: everything
             * @default null
             */
            endpoints: components["schemas"]["Scope"][] | null;
            /**
             * Expires At
             * @description when it ends; default: never
             * @default null
             */
            expires_at: string | null;
            /**
             * Expires In
             * @description the same in seconds from now; one of the two
             * @default null
             */
            expires_in: number | null;
            /**
             * @description those to change; null takes one away
             * @default null
             */
            limits: components["schemas"]["LimitsBody"] | null;
        };
        /**
         * LimitsBody
         * @description Each may be left out: then it stays, or there is none.
         */
        LimitsBody: {
            /**
             * Requests Per Minute
             * @description requests that may begin in a minute
             * @default null
             */
            requests_per_minute: number | null;
            /**
             * Tokens Per Minute
             * @description chat tokens that may be used in a minute
             * @default null
             */
            tokens_per_minute: number | null;
            /**
             * Concurrent Jobs
             * @description jobs that may be open at once
             * @default null
             */
            concurrent_jobs: number | null;
            /**
             * Concurrent Streams
             * @description streams that may be open at once
             * @default null
             */
            concurrent_streams: number | null;
        };
        /**
         * PeriodicBudget
         * @description A budget and its period.
         * @example {
         *       "cap": "10.00",
         *       "time_zone": "Europe/Berlin"
         *     }
         */
        PeriodicBudget: {
            /**
             * Cap
             * @description USD, as a decimal string such as "10.00"
             */
            cap: string | number;
            /**
             * Time Zone
             * @description IANA name of the zone whose days and months count
             * @default UTC
             */
            time_zone: string;
            /** @description a total that never begins anew, or each day or month */
            period: components["schemas"]["Period"];
        };
        /**
         * ReasonBody
         * @description Why the ledger is mended.
         * @example {
         *       "reason": "the film was cut off"
         *     }
         */
        ReasonBody: {
            /**
             * Reason
             * @description for the ledger and the audit log
             */
            reason: string;
        };
        /**
         * RotateBody
         * @description How a key is to be replaced.
         * @example {
         *       "overlap_seconds": 3600
         *     }
         */
        RotateBody: {
            /**
             * Overlap Seconds
             * @description how long the old key works beside the new one; 0: it ends at once
             * @default 86400
             */
            overlap_seconds: number;
        };
        /**
         * WebhookBody
         * @description A new webhook.
         * @example {
         *       "events": [
         *         "job.succeeded",
         *         "job.failed"
         *       ],
         *       "url": "https://example.com/penstock"
         *     }
         */
        WebhookBody: {
            /**
             * Url
             * @description http or https, into the public internet; redirects are not followed
             */
            url: string;
            /**
             * Events
             * @description default: the four that end a job
             * @default null
             */
            events: (components["schemas"]["EventType"] | "budget.threshold")[] | null;
            /**
             * Description
             * @description yours
             * @default null
             */
            description: string | null;
        };
        /**
         * WebhookPatch
         * @description What is to be changed of a webhook.
         * @example {
         *       "disabled": false
         *     }
         */
        WebhookPatch: {
            /**
             * Url
             * @description where it is from now on, also for what is on its way
             * @default null
             */
            url: string | null;
            /**
             * Events
             * @description what it is told from now on
             * @default null
             */
            events: (components["schemas"]["EventType"] | "budget.threshold")[] | null;
            /**
             * Description
             * @description yours
             * @default null
             */
            description: string | null;
            /**
             * Disabled
             * @description true: it is told nothing; false: it is told again
             * @default null
             */
            disabled: boolean | null;
        };
        /**
         * InputItem
         * @description One generation.
         */
        InputItem: {
            /**
             * Params
             * @description the model's own params; see GET /api/v1/models/{id}
             */
            params: {
                [key: string]: unknown;
            };
        };
        /**
         * Webhook
         * @description Where this request's events are to be delivered.
         */
        Webhook: {
            /** Url */
            url: string;
            /**
             * Events
             * @description default: the four that end a job
             * @default null
             */
            events: components["schemas"]["EventType"][] | null;
        };
        /**
         * FileInput
         * @description The input picture: exactly one of `url`, `file_token` and `object`.
         */
        FileInput: {
            /**
             * Url
             * @description http(s) URL, or a `data:` URI, of a JPEG, PNG or WebP of at most 20 MB, each side 20 to 6000 pixels
             * @default null
             */
            url: string | null;
            /**
             * File Token
             * @description token of an upload to `POST /api/v1/files`
             * @default null
             */
            file_token: string | null;
            /**
             * Object
             * @description reference of a stored object, where the vendor can read it
             * @default null
             */
            object: (string | components["schemas"]["StoredObject"]) | null;
            /**
             * Type
             * @description what the bytes are; sniffed when absent, and an error when it contradicts them
             * @default null
             */
            type: ("jpg" | "jpeg" | "png" | "webp" | "image") | null;
        };
        /**
         * StoredObject
         * @description A file in a bucket that the vendor itself can read.
         */
        StoredObject: {
            /** Bucket */
            bucket: string;
            /** Key */
            key: string;
        };
        /**
         * Ending
         * @description How the simulated job ends.
         * @enum {string}
         */
        Ending: "succeeded" | "failed" | "filtered" | "no_output" | "corrupt" | "wrong_size" | "never";
        /**
         * Submission
         * @description What happens to the submit call.
         * @enum {string}
         */
        Submission: "accepted" | "reply_lost" | "never_arrived" | "unreachable" | "busy" | "rejected" | "unauthorized";
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export type operations = Record<string, never>;
