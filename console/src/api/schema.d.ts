export type paths = Record<string, never>;
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /**
         * AccountPage
         * @description One page of a list. Send `next_cursor` as `cursor` to get the next page.
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
         * @description The owner of jobs, results and keys.
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
             * @description when the account was closed; its keys are refused since then
             */
            closed_at: string | null;
            /** @description of all its keys together */
            limits: components["schemas"]["LimitsShape"];
            /** Budgets */
            budgets: components["schemas"]["BudgetShape"][];
            /**
             * Tag Budgets
             * @description those of its tags, by tag and period
             */
            tag_budgets: components["schemas"]["BudgetShape"][];
            /**
             * Keys
             * @description how many of its keys are neither revoked nor expired
             */
            keys: number;
            /** @description `quota` is null if that of the settings applies */
            storage: components["schemas"]["StorageShape"];
            /**
             * Content Log
             * @description true: prompts and answers of its keys are logged, if the settings allow it
             */
            content_log: boolean;
        };
        /**
         * Action
         * @description The kind of a change.
         * @enum {string}
         */
        Action: "account.created" | "account.renamed" | "account.limited" | "account.logged" | "account.closed" | "account.reopened" | "key.created" | "key.changed" | "key.rotated" | "key.revoked" | "budget.set" | "budget.removed" | "ledger.refunded" | "ledger.released" | "ledger.settled" | "webhook.disabled" | "audit.trimmed" | "person.added" | "person.changed" | "person.deactivated" | "person.activated" | "person.signed_in" | "person.signed_out" | "person.unlinked" | "member.added" | "member.changed" | "member.removed" | "key_policy.set" | "settings.changed" | "settings.restored" | "price.set" | "price.removed" | "content.read" | "content.deleted";
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
         * @description One page of a list. Send `next_cursor` as `cursor` to get the next page.
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
             * @description `admin`: with the administrator's key; `cli`: on the command line; `server`: by itself; or a person's id
             */
            actor: string;
            action: components["schemas"]["Action"];
            /**
             * Subject
             * @description the account, key, person, job or completion
             */
            subject: string;
            /** Account Id */
            account_id: string | null;
            /**
             * Detail
             * @description the values before and after; never a secret
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
            of: "account" | "key" | "tag";
            /**
             * Tag
             * @description present if it is of a tag
             * @default null
             */
            tag: string | null;
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
         * @description State of a budget in decimal strings of USD. `held` is reserved for open jobs and requests.
         */
        BudgetShape: {
            /**
             * Of
             * @enum {string}
             */
            of: "account" | "key" | "tag";
            /**
             * Tag
             * @description present if it is of a tag
             * @default null
             */
            tag: string | null;
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
         * @description A model, as the clients of OpenAI and of Anthropic know it.
         */
        ChatModel: {
            /** Id */
            id: string;
            /**
             * Object
             * @constant
             */
            object: "model";
            /**
             * Type
             * @constant
             */
            type: "model";
            /** Display Name */
            display_name: string;
            /** Created */
            created: number;
            /** Created At */
            created_at: string;
            /**
             * Lifecycle
             * @constant
             */
            lifecycle: "active";
            /** Owned By */
            owned_by: string;
            /**
             * Description
             * @description a sentence about the model; null: there is none
             */
            description: string | null;
            /**
             * Kind
             * @description `embedding`: it is served by `/llm/embeddings`; `speech`: by `/llm/audio/speech`; `transcription`: by `/llm/audio/transcriptions`; `image` and `video`, only below `/v1`: by `/v1/images/generations` and `/v1/videos`
             * @enum {string}
             */
            kind: "chat" | "embedding" | "speech" | "transcription" | "image" | "video";
        };
        /**
         * ChatModelList
         * @description Every such model that this key may use.
         */
        ChatModelList: {
            /**
             * Object
             * @constant
             */
            object: "list";
            /** Data */
            data: components["schemas"]["ChatModel"][];
            /**
             * Has More
             * @description all of them are in this list
             * @constant
             */
            has_more: false;
            /** First Id */
            first_id: string | null;
            /** Last Id */
            last_id: string | null;
        };
        /**
         * ChatResponse
         * @description OpenAI's response object; vendors may add fields.
         */
        ChatResponse: {
            /** Id */
            id: string;
            /**
             * Object
             * @constant
             */
            object: "response";
            /** Created At */
            created_at: number;
            /**
             * Status
             * @enum {string}
             */
            status: "queued" | "in_progress" | "completed" | "incomplete" | "failed" | "cancelled";
            /** Model */
            model: string;
            /** Output */
            output: {
                [key: string]: unknown;
            }[];
            /**
             * Usage
             * @default null
             */
            usage: {
                [key: string]: unknown;
            } | null;
            /**
             * Error
             * @default null
             */
            error: {
                [key: string]: unknown;
            } | null;
        } & {
            [key: string]: unknown;
        };
        /**
         * ClipShape
         * @description One animation of a model.
         */
        ClipShape: {
            /** Name */
            name: string;
            /** Seconds */
            seconds: number;
        };
        /**
         * ComingPrice
         * @description A price to come.
         */
        ComingPrice: {
            /**
             * Price
             * @description as the settings write it; null: not known
             */
            price: {
                [key: string]: unknown;
            } | null;
            /**
             * Origin
             * @description file: the settings declare it; row: a price of the store; vendor: the vendor's own file
             */
            origin: ("file" | "row" | "vendor") | null;
            /**
             * Since
             * @description null: it always was
             */
            since: string | null;
            /**
             * Until
             * @description null: it never ends
             */
            until: string | null;
            /**
             * Row
             * @description the id of the price in the store
             */
            row: number | null;
            /**
             * From
             * Format: date-time
             */
            from: string;
        };
        /**
         * ConnectionTestResult
         * @description The result of a cheap call to a vendor.
         */
        ConnectionTestResult: {
            /**
             * Object
             * @constant
             */
            object: "connection_test";
            /** Ok */
            ok: boolean;
            /**
             * Outcome
             * @enum {string}
             */
            outcome: "ok" | "reachable" | "key_refused" | "unreachable" | "not_allowed" | "unexpected" | "inside";
            /** Message */
            message: string;
            /** Seconds */
            seconds: number;
            /**
             * Models
             * @description the models that the vendor lists, where that is known
             */
            models: string[];
        };
        /**
         * ContentDeletion
         * @description The result of deleting many records.
         */
        ContentDeletion: {
            /**
             * Object
             * @constant
             */
            object: "content_deletion";
            /** Deleted */
            deleted: number;
        };
        /**
         * ContentMessage
         * @description A message of a request or of an answer.
         */
        ContentMessage: {
            /**
             * Role
             * @description of the message, or the name of the field or param that the text stood in
             */
            role: string;
            /** Parts */
            parts: components["schemas"]["ContentPart"][];
            /**
             * Finish Reason
             * @default null
             */
            finish_reason: string | null;
        };
        /**
         * ContentPage
         * @description One page of a list. Send `next_cursor` as `cursor` to get the next page.
         */
        ContentPage: {
            /**
             * Object
             * @constant
             */
            object: "list";
            /** Data */
            data: components["schemas"]["ContentSummary"][];
            /** Has More */
            has_more: boolean;
            /** Next Cursor */
            next_cursor: string | null;
        };
        /**
         * ContentPart
         * @description A part of a message, with the fields of its type only. Texts have marks such as `[redacted:email]`.
         */
        ContentPart: {
            /**
             * Type
             * @enum {string}
             */
            type: "text" | "reasoning" | "tool_call" | "tool_call_response" | "file";
            /**
             * Content
             * @default null
             */
            content: string | null;
            /**
             * Id
             * @default null
             */
            id: string | null;
            /**
             * Name
             * @default null
             */
            name: string | null;
            /**
             * Arguments
             * @default null
             */
            arguments: string | null;
            /**
             * Response
             * @default null
             */
            response: string | null;
            /**
             * Kind
             * @description of a file, whose bytes are not kept
             * @default null
             */
            kind: string | null;
            /**
             * Content Type
             * @default null
             */
            content_type: string | null;
            /**
             * Sha256
             * @default null
             */
            sha256: string | null;
            /**
             * Bytes
             * @default null
             */
            bytes: number | null;
            /**
             * Param
             * @default null
             */
            param: string | null;
        };
        /**
         * ContentRecord
         * @description A logged request with its content.
         */
        ContentRecord: {
            /**
             * Object
             * @constant
             */
            object: "content";
            /** Id */
            id: string;
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /**
             * Kind
             * @enum {string}
             */
            kind: "chat" | "generation";
            /**
             * Endpoint
             * @description the dialect of a chat request, or `generation`
             */
            endpoint: string;
            /** Model */
            model: string;
            /** Vendor */
            vendor: string;
            /** Key Id */
            key_id: string;
            /** Request Id */
            request_id: string;
            /**
             * Job Id
             * @description the job of a generation; the record is deleted with it
             */
            job_id: string | null;
            /**
             * Status
             * @description ok, cached, failed, cut or canceled; of a generation: accepted
             */
            status: string;
            /**
             * Error
             * @description the code of its error
             */
            error: string | null;
            /** Streamed */
            streamed: boolean;
            /** Seconds */
            seconds: number | null;
            /** Prompt Tokens */
            prompt_tokens: number | null;
            /** Completion Tokens */
            completion_tokens: number | null;
            /**
             * Cost
             * @description USD; null: not known, or a generation's, whose job has it
             */
            cost: string | null;
            /**
             * Bytes
             * @description what it counts against the quota
             */
            bytes: number;
            /** Instructions */
            instructions: components["schemas"]["ContentPart"][];
            /** Input */
            input: components["schemas"]["ContentMessage"][];
            /** Output */
            output: components["schemas"]["ContentMessage"][];
            /**
             * Redactions
             * @description how often each kind was redacted
             */
            redactions: {
                [key: string]: number;
            };
            /**
             * Truncated
             * @description true: some of it was too long and is not kept
             */
            truncated: boolean;
        };
        /**
         * ContentSummary
         * @description A logged request, without its content.
         */
        ContentSummary: {
            /**
             * Object
             * @constant
             */
            object: "content";
            /** Id */
            id: string;
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /**
             * Kind
             * @enum {string}
             */
            kind: "chat" | "generation";
            /**
             * Endpoint
             * @description the dialect of a chat request, or `generation`
             */
            endpoint: string;
            /** Model */
            model: string;
            /** Vendor */
            vendor: string;
            /** Key Id */
            key_id: string;
            /** Request Id */
            request_id: string;
            /**
             * Job Id
             * @description the job of a generation; the record is deleted with it
             */
            job_id: string | null;
            /**
             * Status
             * @description ok, cached, failed, cut or canceled; of a generation: accepted
             */
            status: string;
            /**
             * Error
             * @description the code of its error
             */
            error: string | null;
            /** Streamed */
            streamed: boolean;
            /** Seconds */
            seconds: number | null;
            /** Prompt Tokens */
            prompt_tokens: number | null;
            /** Completion Tokens */
            completion_tokens: number | null;
            /**
             * Cost
             * @description USD; null: not known, or a generation's, whose job has it
             */
            cost: string | null;
            /**
             * Bytes
             * @description what it counts against the quota
             */
            bytes: number;
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
         * DeletedResponse
         * @description The id of a response that was deleted.
         */
        DeletedResponse: {
            /** Id */
            id: string;
            /**
             * Object
             * @constant
             */
            object: "response";
            /**
             * Deleted
             * @constant
             */
            deleted: true;
        };
        /**
         * DeliveryAttempt
         * @description One attempt to send a delivery.
         */
        DeliveryAttempt: {
            /**
             * At
             * Format: date-time
             */
            at: string;
            /**
             * Status Code
             * @description null: no answer
             */
            status_code: number | null;
            /** Latency Ms */
            latency_ms: number;
            /**
             * Error
             * @description null: success
             */
            error: string | null;
            /**
             * Response
             * @description the beginning of the answer, up to 1024 bytes
             */
            response: string;
        };
        /**
         * DeliveryMessage
         * @description The request that an attempt sends.
         */
        DeliveryMessage: {
            /**
             * Object
             * @constant
             */
            object: "webhook.message";
            /** Url */
            url: string;
            /** Headers */
            headers: {
                [key: string]: string;
            };
            /**
             * Body
             * @description JSON, byte for byte as it is signed
             */
            body: string;
        };
        /**
         * DeliveryPage
         * @description One page of a list. Send `next_cursor` as `cursor` to get the next page.
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
         * @description The effect that a request would have. Nothing was created.
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
            /**
             * Guardrails
             * @description findings of the guardrails that inspected the inputs
             */
            guardrails: components["schemas"]["GuardrailShape"][];
        };
        /**
         * Embedding
         * @description The vector of one text.
         */
        Embedding: {
            /**
             * Object
             * @constant
             */
            object: "embedding";
            /**
             * Index
             * @description the place of the text in `input`
             */
            index: number;
            /**
             * Embedding
             * @description numbers, or base64 of little-endian float32
             */
            embedding: number[] | string;
        };
        /**
         * EmbeddingList
         * @description OpenAI's list of embeddings; vendors may add fields.
         */
        EmbeddingList: {
            /**
             * Object
             * @constant
             */
            object: "list";
            /** Model */
            model: string;
            /** Data */
            data: components["schemas"]["Embedding"][];
            /** Usage */
            usage: {
                [key: string]: unknown;
            };
        } & {
            [key: string]: unknown;
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
         * @description The error, whether a retry can succeed, and what to do.
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
         * @description A change of a job, a pipeline or a budget, with its state at that time.
         */
        EventRecord: {
            /** Type */
            type: components["schemas"]["EventType"] | components["schemas"]["PipelineEventType"] | "budget.threshold";
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
            data: components["schemas"]["JobRecord"] | components["schemas"]["PipelineRecord"] | components["schemas"]["BudgetNotice"];
        };
        /**
         * EventType
         * @description The closed set of events of jobs; the last four end a job.
         * @enum {string}
         */
        EventType: "job.queued" | "job.started" | "job.progress" | "job.succeeded" | "job.failed" | "job.canceled" | "job.expired";
        /**
         * Feed
         * @description Events in order. Send `next_after` as `after` to get the next page.
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
         * @description An uploaded file; `width` and `height` are 0 for kinds that have none.
         */
        FileRecord: {
            /**
             * Object
             * @constant
             */
            object: "file";
            /** File Token */
            file_token: string;
            /**
             * Kind
             * @enum {string}
             */
            kind: "image" | "video" | "audio" | "3d";
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
            /** Duration Seconds */
            duration_seconds: number | null;
            /** Name */
            name: string | null;
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
         * @description Columns by which a report can group.
         * @enum {string}
         */
        Group: "day" | "month" | "model" | "key" | "vendor" | "kind" | "account" | "tag" | "end_user" | "session";
        /**
         * GuardrailShape
         * @description The finding of one guardrail that inspected the request.
         */
        GuardrailShape: {
            /** Name */
            name: string;
            /**
             * Verdict
             * @enum {string}
             */
            verdict: "allow" | "unavailable";
            /** Reason */
            reason: string | null;
            /** Annotations */
            annotations: {
                [key: string]: unknown;
            };
        };
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
         * ImageShape
         * @description A picture, in base64 or as a signed link, as `response_format` says.
         */
        ImageShape: {
            /**
             * B64 Json
             * @default null
             */
            b64_json: string;
            /**
             * Url
             * @default null
             */
            url: string;
        };
        /**
         * ImagesAnswer
         * @description The pictures of a request, as OpenAI's clients read them.
         */
        ImagesAnswer: {
            /** Created */
            created: number;
            /** Data */
            data: components["schemas"]["ImageShape"][];
            /**
             * Size
             * @default null
             */
            size: string;
            /**
             * Quality
             * @default null
             */
            quality: string;
            /**
             * Background
             * @default null
             */
            background: string;
            /**
             * Output Format
             * @default null
             */
            output_format: string;
            /**
             * Usage
             * @description zeros: pictures are not paid by tokens
             */
            usage: {
                [key: string]: unknown;
            };
        };
        /**
         * IssuedKey
         * @description A new key. Its text is shown only once.
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
             * @description the first of the keys that replaced each other; they share limits and budgets
             */
            lineage: string;
            /** Replaced By */
            replaced_by: string | null;
            /**
             * Reuse
             * @description exact: its generations reuse kept results by default
             */
            reuse: "exact" | null;
            /**
             * Tags
             * @description tags of all its requests, which callers cannot remove
             */
            tags: string[];
            /**
             * Content Log
             * @description whether its prompts and answers are logged; null: as its account
             */
            content_log: boolean | null;
            /**
             * Logs Content
             * @description true: they are logged, by the key or its account, if the settings allow it
             */
            logs_content: boolean;
            /**
             * Person Id
             * @description the person it belongs to; null for a service key
             */
            person_id: string | null;
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
         * @description The error of a failed job, with its stage and the vendor's error.
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
         * @description One page of a list. Send `next_cursor` as `cursor` to get the next page.
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
             * @description resolved params with defaults filled, and facts of the file
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
            /**
             * Tags
             * @description tags by which its cost is counted
             */
            tags: string[];
            /**
             * End User
             * @description the end user that its request named
             */
            end_user: string | null;
            /**
             * Session
             * @description the session that its request named
             */
            session: string | null;
            /** Batch Id */
            batch_id: string | null;
            /**
             * Parents
             * @description ids of the jobs whose outputs it takes as inputs
             */
            parents: string[];
            /**
             * Pipeline Id
             * @description the pipeline that it is part of, `pipe_…`
             */
            pipeline_id: string | null;
            /**
             * Step
             * @description the name of the pipeline's step that it carries out
             */
            step: string | null;
            /**
             * Guardrails
             * @description findings of the guardrails that inspected the request
             */
            guardrails: components["schemas"]["GuardrailShape"][];
            urls: components["schemas"]["JobUrls"];
            /** Request Id */
            request_id: string;
        };
        /**
         * JobUrls
         * @description Links of a job.
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
         * @description One page of a list. Send `next_cursor` as `cursor` to get the next page.
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
         * KeyPolicyRecord
         * @description The limits of an account for keys of its people.
         */
        KeyPolicyRecord: {
            /**
             * Object
             * @constant
             */
            object: "key_policy";
            /**
             * Max Keys
             * @description working keys that one person may have
             */
            max_keys: number;
            /**
             * Max Budget
             * @description USD that a new key may spend in a month; null: any amount
             */
            max_budget: string | null;
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
             * @description the first of the keys that replaced each other; they share limits and budgets
             */
            lineage: string;
            /** Replaced By */
            replaced_by: string | null;
            /**
             * Reuse
             * @description exact: its generations reuse kept results by default
             */
            reuse: "exact" | null;
            /**
             * Tags
             * @description tags of all its requests, which callers cannot remove
             */
            tags: string[];
            /**
             * Content Log
             * @description whether its prompts and answers are logged; null: as its account
             */
            content_log: boolean | null;
            /**
             * Logs Content
             * @description true: they are logged, by the key or its account, if the settings allow it
             */
            logs_content: boolean;
            /**
             * Person Id
             * @description the person it belongs to; null for a service key
             */
            person_id: string | null;
            limits: components["schemas"]["LimitsShape"];
            /**
             * Budgets
             * @description its own; its account may have others
             */
            budgets: components["schemas"]["BudgetShape"][];
        };
        /**
         * Kind
         * @description The kind of an output.
         * @enum {string}
         */
        Kind: "model" | "video" | "image" | "audio" | "text";
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
             * @description cost beyond the budgets, which is not charged
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
             * @description the public id of the key of the request
             */
            key: string;
            /**
             * Accepted At
             * Format: date-time
             * @description when the subject was accepted; this decides its budget period
             */
            accepted_at: string;
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /** Note */
            note: string;
            /** Tags */
            tags: string[];
        };
        /**
         * LedgerPage
         * @description One page of a list. Send `next_cursor` as `cursor` to get the next page.
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
         * @description Limits per minute and on concurrency. Null: no limit.
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
         * LineageJob
         * @description A job of the lineage, in short.
         */
        LineageJob: {
            /** Id */
            id: string;
            /** Model */
            model: string;
            /** Status */
            status: string;
            /** Step */
            step: string | null;
            /** Pipeline Id */
            pipeline_id: string | null;
        };
        /**
         * LineageLinkShape
         * @description An output of one job that is an input of another.
         */
        LineageLinkShape: {
            /** Parent */
            parent: string;
            /** Child */
            child: string;
            /**
             * Param
             * @description path of the file among the child's params
             */
            param: string;
            /**
             * Output
             * @description id of the output; null while the parent is at work
             */
            output: string | null;
            /**
             * Distance
             * @description steps from the job that was asked for, from 1
             */
            distance: number;
        };
        /**
         * LineageRecord
         * @description The jobs that led to a job, and those that were made from its outputs.
         */
        LineageRecord: {
            /**
             * Object
             * @constant
             */
            object: "lineage";
            /** Job */
            job: string;
            /** Parents */
            parents: components["schemas"]["LineageLinkShape"][];
            /** Children */
            children: components["schemas"]["LineageLinkShape"][];
            /** Jobs */
            jobs: components["schemas"]["LineageJob"][];
            /**
             * Truncated
             * @description whether there are more
             */
            truncated: boolean;
        };
        /**
         * MemberPage
         * @description One page of a list. Send `next_cursor` as `cursor` to get the next page.
         */
        MemberPage: {
            /**
             * Object
             * @constant
             */
            object: "list";
            /** Data */
            data: components["schemas"]["MemberRecord"][];
            /** Has More */
            has_more: boolean;
            /** Next Cursor */
            next_cursor: string | null;
        };
        /**
         * MemberRecord
         * @description A person of an account.
         */
        MemberRecord: {
            /**
             * Object
             * @constant
             */
            object: "member";
            /** Id */
            id: string;
            /** Email */
            email: string;
            /** Name */
            name: string;
            role: components["schemas"]["PersonRole"];
            /**
             * Source
             * @description `local`: given here; else the sign-in provider whose rule gave it
             */
            source: string;
            /**
             * Since
             * Format: date-time
             */
            since: string;
        };
        /**
         * MembershipShape
         * @description A role in an account.
         */
        MembershipShape: {
            /** Account Id */
            account_id: string;
            /**
             * Account
             * @description the account's name
             */
            account: string;
            role: components["schemas"]["PersonRole"];
            /**
             * Source
             * @description `local`: given here; else the sign-in provider whose rule gave it
             */
            source: string;
            /**
             * Since
             * Format: date-time
             */
            since: string;
        };
        /**
         * MeshShape
         * @description Facts of a 3D model beside its faces and vertices. Null is unknown, as in a format that stays sealed.
         */
        MeshShape: {
            /**
             * Format
             * @enum {string}
             */
            format: "glb" | "obj" | "stl" | "fbx" | "usdz";
            /**
             * Size
             * @description width, height and depth: the box along x, y and z
             */
            size: [
                number,
                number,
                number
            ] | null;
            /**
             * Unit
             * @description unit of `size`: `meter`, or null in a format without one
             */
            unit: string | null;
            /**
             * Has Uv
             * @description whether all of it has texture coordinates
             */
            has_uv: boolean | null;
            /**
             * Is Watertight
             * @description whether each edge is shared by exactly two faces
             */
            is_watertight: boolean | null;
            /** Quads */
            quads: number | null;
            /** Materials */
            materials: number | null;
            /** Textures */
            textures: number | null;
            /** Skins */
            skins: number | null;
            /**
             * Joints
             * @description joints of its skeletons
             */
            joints: number | null;
            /**
             * Clips
             * @description animations
             */
            clips: components["schemas"]["ClipShape"][];
        };
        /**
         * Message
         * @description Anthropic's message; vendors may add fields.
         */
        Message: {
            /** Id */
            id: string;
            /**
             * Type
             * @constant
             */
            type: "message";
            /**
             * Role
             * @constant
             */
            role: "assistant";
            /** Model */
            model: string;
            /** Content */
            content: {
                [key: string]: unknown;
            }[];
            /** Stop Reason */
            stop_reason: string;
            /**
             * Stop Sequence
             * @default null
             */
            stop_sequence: string | null;
            /** Usage */
            usage: {
                [key: string]: unknown;
            };
        } & {
            [key: string]: unknown;
        };
        /**
         * MessageError
         * @description The body of every answer of Messages that is not a success, in Anthropic's shape.
         */
        MessageError: {
            /**
             * Type
             * @constant
             */
            type: "error";
            error: components["schemas"]["MessageFault"];
            /** Request Id */
            request_id: string | null;
        };
        /**
         * MessageFault
         * @description The kind of an error by Anthropic's names, with our code.
         */
        MessageFault: {
            /** Type */
            type: string;
            /** Message */
            message: string;
            /**
             * Code
             * @default null
             */
            code: string | null;
            /**
             * Param
             * @default null
             */
            param: string | null;
            /**
             * Suggestion
             * @default null
             */
            suggestion: string | null;
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
             * Description
             * @description a sentence about the model; null: there is none
             */
            description: string | null;
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
             * @description the price now, with several vendors the highest of each part; null: not known
             */
            price: components["schemas"]["PriceShape"] | components["schemas"]["TokenPriceShape"] | null;
            /**
             * Prices
             * @description current and future prices of each vendor
             */
            prices: components["schemas"]["PriceTerm"][];
            /** Vendors */
            vendors: string[];
            /** @description null until it has run here */
            typical_seconds: components["schemas"]["TypicalSeconds"] | null;
            /**
             * Endpoints
             * @description paths that take requests for it, the preferred first
             */
            endpoints: string[];
        };
        /**
         * OnError
         * @description The effect of a failed job on the rest of its pipeline.
         * @enum {string}
         */
        OnError: "stop" | "continue";
        /**
         * Outage
         * @description Seconds since the store answered, and seconds for which chat is still served without it.
         */
        Outage: {
            /** Seconds */
            seconds: number;
            /** Seconds Left */
            seconds_left: number;
        };
        /**
         * Outcome
         * @description The outcome of an attempt at a vendor.
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
            mesh: components["schemas"]["MeshShape"] | null;
            /**
             * Provenance
             * @description how it is signed: `c2pa` inside, or `sidecar` beside it at `sidecar_url`
             */
            provenance: ("c2pa" | "sidecar") | null;
            /** Sidecar Url */
            sidecar_url: string | null;
            /** Url */
            url: string;
            /**
             * Url Expires At
             * Format: date-time
             */
            url_expires_at: string;
        };
        /**
         * OwnKey
         * @description The key of the request. Empty lists mean all. The administrator's key belongs to no account.
         */
        OwnKey: {
            /**
             * Object
             * @constant
             */
            object: "key";
            /**
             * Kind
             * @enum {string}
             */
            kind: "account" | "admin";
            /** Public Id */
            public_id: string | null;
            /** Name */
            name: string | null;
            /**
             * Account
             * @description the account's name
             */
            account: string | null;
            /** Expires At */
            expires_at: string | null;
            /** Models */
            models: string[];
            /** Endpoints */
            endpoints: components["schemas"]["Scope"][];
            /** @description the role of the key's person in the account; null: it is no person's */
            role: components["schemas"]["PersonRole"] | null;
            /**
             * Content Log
             * @description true: prompts and answers of its requests are logged
             */
            content_log: boolean;
        };
        /**
         * OwnKeyList
         * @description Keys, newest first.
         */
        OwnKeyList: {
            /**
             * Object
             * @constant
             */
            object: "list";
            /** Data */
            data: components["schemas"]["KeyRecord"][];
        };
        /**
         * OwnPerson
         * @description The person who asks.
         */
        OwnPerson: {
            /**
             * Object
             * @constant
             */
            object: "person";
            /** Id */
            id: string;
            /** Email */
            email: string;
            /** Name */
            name: string;
            /**
             * Operator
             * @description true: may administer the whole server
             */
            operator: boolean;
            /**
             * Account Id
             * @description the account of this request
             */
            account_id: string;
            /** @description your role in it */
            role: components["schemas"]["PersonRole"];
            /** Accounts */
            accounts: components["schemas"]["MembershipShape"][];
            /**
             * Endpoints
             * @description method and path of what the role may call
             */
            endpoints: string[];
        };
        /**
         * OwnSession
         * @description The session of this request, with the person and their roles.
         */
        OwnSession: {
            /**
             * Object
             * @constant
             */
            object: "session";
            /** Id */
            id: string;
            /** Provider */
            provider: string;
            /**
             * Title
             * @description the provider's name on the button
             */
            title: string;
            /**
             * Browser
             * @description the `user-agent` of the sign-in
             */
            browser: string;
            /**
             * Address
             * @description the address of the sign-in
             */
            address: string;
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /**
             * Seen At
             * Format: date-time
             * @description the latest request, to a minute
             */
            seen_at: string;
            /**
             * Expires At
             * Format: date-time
             * @description the end, whatever is requested until then
             */
            expires_at: string;
            /**
             * Current
             * @description true: the session of this request
             */
            current: boolean;
            /** Person Id */
            person_id: string;
            /** Email */
            email: string;
            /** Name */
            name: string;
            /**
             * Operator
             * @description true: may administer the whole server
             */
            operator: boolean;
            /**
             * Account Id
             * @description the account of requests without `x-penstock-account`
             */
            account_id: string | null;
            /** Accounts */
            accounts: components["schemas"]["MembershipShape"][];
        };
        /**
         * ParentManifestShape
         * @description An earlier manifest that the file carries, such as its vendor's.
         */
        ParentManifestShape: {
            /** Title */
            title: string;
            /** Relationship */
            relationship: string;
            signature: components["schemas"]["SignerShape"] | null;
            /** Generator */
            generator: string;
        };
        /**
         * Period
         * @description The period of a budget; `total` never resets.
         * @enum {string}
         */
        Period: "total" | "day" | "month";
        /**
         * PersonPage
         * @description One page of a list. Send `next_cursor` as `cursor` to get the next page.
         */
        PersonPage: {
            /**
             * Object
             * @constant
             */
            object: "list";
            /** Data */
            data: components["schemas"]["PersonRecord"][];
            /** Has More */
            has_more: boolean;
            /** Next Cursor */
            next_cursor: string | null;
        };
        /**
         * PersonRecord
         * @description A person with all roles.
         */
        PersonRecord: {
            /**
             * Object
             * @constant
             */
            object: "person";
            /** Id */
            id: string;
            /** Email */
            email: string;
            /** Name */
            name: string;
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /** Deactivated At */
            deactivated_at: string | null;
            /**
             * Signed In At
             * @description the latest sign-in
             */
            signed_in_at: string | null;
            /**
             * Operator
             * @description true: may administer the whole server
             */
            operator: boolean;
            /** Accounts */
            accounts: components["schemas"]["MembershipShape"][];
        };
        /**
         * PersonRole
         * @description The role of a person in an account.
         * @enum {string}
         */
        PersonRole: "owner" | "admin" | "billing" | "member" | "viewer";
        /**
         * PipelineDryRun
         * @description The effect that a pipeline would have. Nothing was created.
         */
        PipelineDryRun: {
            /**
             * Object
             * @constant
             */
            object: "pipeline.dry_run";
            /**
             * Valid
             * @constant
             */
            valid: true;
            /** Jobs */
            jobs: number;
            /** Steps */
            steps: components["schemas"]["PipelineDryRunStep"][];
            cost: components["schemas"]["Cost"];
            /**
             * Budget Left
             * @description null: no budget is set
             */
            budget_left: string | null;
            /**
             * Expected Seconds
             * @description of the slowest chain of steps; null while one of the models has not run here
             */
            expected_seconds: number | null;
        };
        /**
         * PipelineDryRunStep
         * @description One step, with the highest cost of its jobs together.
         */
        PipelineDryRunStep: {
            /** Name */
            name: string;
            /** Model */
            model: string;
            /** Jobs */
            jobs: number;
            /** Needs */
            needs: string[];
            cost: components["schemas"]["Cost"];
            expected_seconds: components["schemas"]["TypicalSeconds"] | null;
        };
        /**
         * PipelineErrorBody
         * @description The steps and jobs that failed, with the code of the first.
         */
        PipelineErrorBody: {
            /** Message */
            message: string;
            /** Code */
            code: string | null;
            /** Steps */
            steps: string[];
            /** Job Ids */
            job_ids: string[];
            /** Retryable */
            retryable: boolean;
        };
        /**
         * PipelineEventType
         * @description The closed set of events of pipelines; the last three end one.
         * @enum {string}
         */
        PipelineEventType: "pipeline.queued" | "pipeline.succeeded" | "pipeline.failed" | "pipeline.canceled";
        /**
         * PipelinePage
         * @description One page of a list. Send `next_cursor` as `cursor` to get the next page.
         */
        PipelinePage: {
            /**
             * Object
             * @constant
             */
            object: "list";
            /** Data */
            data: components["schemas"]["PipelineRecord"][];
            /** Has More */
            has_more: boolean;
            /** Next Cursor */
            next_cursor: string | null;
        };
        /**
         * PipelineRecord
         * @description Jobs that were accepted together and take each other's outputs. Loop on `done`.
         */
        PipelineRecord: {
            /** Id */
            id: string;
            /**
             * Object
             * @constant
             */
            object: "pipeline";
            status: components["schemas"]["PipelineState"];
            /** Done */
            done: boolean;
            /** Progress */
            progress: number;
            /**
             * Steps
             * @description each after those that it needs
             */
            steps: components["schemas"]["StepRecord"][];
            /** Params */
            params: {
                [key: string]: unknown;
            };
            /**
             * Given
             * @description `steps` and `on_error` of the request or the template
             */
            given: {
                [key: string]: unknown;
            };
            on_error: components["schemas"]["OnError"];
            /** Template */
            template: string | null;
            /**
             * Version
             * @description the version of the template
             */
            version: number | null;
            /**
             * Retry Of
             * @description the pipeline that it repeats from a step on
             */
            retry_of: string | null;
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /** Finished At */
            finished_at: string | null;
            /** Expires At */
            expires_at: string | null;
            error: components["schemas"]["PipelineErrorBody"] | null;
            cost: components["schemas"]["Cost"];
            /** Client Ref */
            client_ref: string | null;
            /** Metadata */
            metadata: {
                [key: string]: string;
            } | null;
            urls: components["schemas"]["PipelineUrls"];
            /** Request Id */
            request_id: string;
        };
        /**
         * PipelineState
         * @description The state of a pipeline. Clients loop on `done`.
         * @enum {string}
         */
        PipelineState: "queued" | "running" | "canceling" | "succeeded" | "failed" | "canceled";
        /**
         * PipelineTemplateList
         * @description The newest version of each of your templates, by name.
         */
        PipelineTemplateList: {
            /**
             * Object
             * @constant
             */
            object: "list";
            /** Data */
            data: components["schemas"]["PipelineTemplateRecord"][];
            /**
             * Has More
             * @constant
             */
            has_more: false;
        };
        /**
         * PipelineTemplateRecord
         * @description A version of a stored pipeline.
         */
        PipelineTemplateRecord: {
            /**
             * Object
             * @constant
             */
            object: "pipeline.template";
            /** Name */
            name: string;
            /** Version */
            version: number;
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /** Description */
            description: string | null;
            /** Steps */
            steps: {
                [key: string]: unknown;
            }[];
            /**
             * On Error
             * @enum {string}
             */
            on_error: "stop" | "continue";
            /** Params */
            params: {
                [key: string]: unknown;
            };
        };
        /**
         * PipelineUrls
         * @description Links of a pipeline.
         */
        PipelineUrls: {
            /** Self */
            self: string;
            /** Events */
            events: string;
            /** Cancel */
            cancel: string;
            /** Retry */
            retry: string;
        };
        /**
         * PlacePrice
         * @description The price of a model at a vendor.
         */
        PlacePrice: {
            /**
             * Price
             * @description as the settings write it; null: not known
             */
            price: {
                [key: string]: unknown;
            } | null;
            /**
             * Origin
             * @description file: the settings declare it; row: a price of the store; vendor: the vendor's own file
             */
            origin: ("file" | "row" | "vendor") | null;
            /**
             * Since
             * @description null: it always was
             */
            since: string | null;
            /**
             * Until
             * @description null: it never ends
             */
            until: string | null;
            /**
             * Row
             * @description the id of the price in the store
             */
            row: number | null;
            /**
             * Object
             * @constant
             */
            object: "price";
            /** Model */
            model: string;
            /** Kind */
            kind: string;
            /** Vendor */
            vendor: string;
            /**
             * Provider
             * @description the vendor's name in price lists, by the host of its address
             */
            provider: string | null;
            /** Coming */
            coming: components["schemas"]["ComingPrice"][];
        };
        /**
         * PriceBook
         * @description All prices.
         */
        PriceBook: {
            /**
             * Object
             * @constant
             */
            object: "price_book";
            /**
             * Version
             * @description every change raises it
             */
            version: number;
            /** Prices */
            prices: components["schemas"]["PlacePrice"][];
            /**
             * Rows
             * @description the newest prices of the store, at most 500
             */
            rows: components["schemas"]["PriceRowShape"][];
        };
        /**
         * PriceFinding
         * @description One price of a list, or the reason that there is none.
         */
        PriceFinding: {
            /** Model */
            model: string;
            /** Vendor */
            vendor: string;
            /**
             * Verdict
             * @enum {string}
             */
            verdict: "new" | "changed" | "same" | "declared" | "ambiguous" | "credits" | "unusable" | "unlisted" | "unmapped";
            /** Why */
            why: string;
            /**
             * Entry
             * @description the entry of the list
             */
            entry: string;
            /** From */
            from: string | null;
            /** Until */
            until: string | null;
            /**
             * Origin
             * @description of the old price
             */
            origin: ("file" | "row" | "vendor") | null;
            /** Old */
            old: {
                [key: string]: unknown;
            } | null;
            /** New */
            new: {
                [key: string]: unknown;
            } | null;
            /** Parts */
            parts: components["schemas"]["PricePart"][];
            /**
             * Left Out
             * @description costs of the list for which a price has no place here
             */
            left_out: string[];
            /** Source */
            source: string;
        };
        /**
         * PricePart
         * @description The change of one part of a price, in decimal strings of USD.
         */
        PricePart: {
            /** Name */
            name: string;
            /** Old */
            old: string | null;
            /** New */
            new: string | null;
            /** Percent */
            percent: number | null;
        };
        /**
         * PricePreview
         * @description The differences between a list and the prices in force.
         */
        PricePreview: {
            /**
             * Object
             * @constant
             */
            object: "price_preview";
            /**
             * Version
             * @description send it with the prices that you write
             */
            version: number;
            /**
             * Form
             * @enum {string}
             */
            form: "litellm" | "openrouter" | "penstock";
            /** Source */
            source: string;
            /** Findings */
            findings: components["schemas"]["PriceFinding"][];
        };
        /**
         * PriceRowShape
         * @description A dated price of the store.
         */
        PriceRowShape: {
            /**
             * Object
             * @constant
             */
            object: "price_row";
            /** Id */
            id: number;
            /** Model */
            model: string;
            /** Vendor */
            vendor: string;
            /**
             * From
             * Format: date-time
             */
            from: string;
            /** Until */
            until: string | null;
            /**
             * Status
             * @description in_force: unless the settings declare another
             * @enum {string}
             */
            status: "in_force" | "coming" | "ended";
            /** Price */
            price: {
                [key: string]: unknown;
            };
            /** Source */
            source: string;
            /** Actor */
            actor: string;
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
        };
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
            /** Per Second If */
            per_second_if: {
                [key: string]: string;
            };
            /** Per Image If */
            per_image_if: {
                [key: string]: string;
            };
            /**
             * Seconds
             * @description seconds that are charged if the params give none
             */
            seconds: number | null;
            /**
             * Faces
             * @description faces that are charged if `face_limit` is not given
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
         * @description The price of one vendor and when it applies.
         */
        PriceTerm: {
            /** Vendor */
            vendor: string;
            /**
             * From
             * @description null: from the beginning
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
         * PriceTermShape
         * @description A price, its origin and its period.
         */
        PriceTermShape: {
            /**
             * Price
             * @description as the settings write it; null: not known
             */
            price: {
                [key: string]: unknown;
            } | null;
            /**
             * Origin
             * @description file: the settings declare it; row: a price of the store; vendor: the vendor's own file
             */
            origin: ("file" | "row" | "vendor") | null;
            /**
             * Since
             * @description null: it always was
             */
            since: string | null;
            /**
             * Until
             * @description null: it never ends
             */
            until: string | null;
            /**
             * Row
             * @description the id of the price in the store
             */
            row: number | null;
        };
        /**
         * ProblemShape
         * @description One thing wrong with a signature, by its C2PA code.
         */
        ProblemShape: {
            /** Code */
            code: string;
            /** Message */
            message: string;
        };
        /**
         * Readiness
         * @description Readiness to serve requests, with the checks behind it.
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
            /**
             * Settings Version
             * @description version of the run-time settings in use; 0: none was made
             */
            settings_version: number;
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
         * @description The reason why a webhook is disabled.
         * @enum {string}
         */
        Reason: "asked" | "gone" | "failing";
        /**
         * ResponseItemPage
         * @description One page of input items. Send `last_id` as `after` to get the next page.
         */
        ResponseItemPage: {
            /**
             * Object
             * @constant
             */
            object: "list";
            /** Data */
            data: {
                [key: string]: unknown;
            }[];
            /** First Id */
            first_id: string;
            /** Last Id */
            last_id: string;
            /** Has More */
            has_more: boolean;
        };
        /**
         * Role
         * @description The role of an output.
         * @enum {string}
         */
        Role: "primary" | "preview";
        /**
         * RouteError
         * @description The last failure of a route since this process started or its settings changed.
         */
        RouteError: {
            /** Code */
            code: string | null;
            /** Message */
            message: string;
        };
        /**
         * RouteHealth
         * @description Health of a chat route in the process that answers.
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
             * @description seconds until it is used again
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
             * @description the vendor's own name of the model
             */
            upstream_model: string;
            /** Order */
            order: number;
            /** Weight */
            weight: number;
            /** @description null for routes of jobs */
            health: components["schemas"]["RouteHealth"] | null;
        };
        /**
         * RunTimeSettings
         * @description Vendors and models, and where they are set.
         */
        RunTimeSettings: {
            /**
             * Object
             * @constant
             */
            object: "run_time_settings";
            /**
             * Version
             * @description the newest version; 0: nothing was changed yet
             */
            version: number;
            /** Vendors */
            vendors: components["schemas"]["SettingsEntry"][];
            /** Models */
            models: components["schemas"]["SettingsEntry"][];
            /** Limits */
            limits: components["schemas"]["SettingsLimit"][];
            /**
             * Lists Models
             * @description true: the file lists the models; false: each vendor offers all of its own
             */
            lists_models: boolean;
            /** Processes */
            processes: components["schemas"]["SettingsProcessRecord"][];
        };
        /**
         * Scope
         * @description The permissions of a key. `generate` includes reading and deleting one's own jobs; `read` is read-only.
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
            event: components["schemas"]["EventType"] | components["schemas"]["PipelineEventType"] | "budget.threshold";
            /** Data */
            data: string;
        };
        /**
         * SessionList
         * @description Sessions, newest first.
         */
        SessionList: {
            /**
             * Object
             * @constant
             */
            object: "list";
            /** Data */
            data: components["schemas"]["SessionShape"][];
        };
        /**
         * SessionShape
         * @description A session in the console.
         */
        SessionShape: {
            /**
             * Object
             * @constant
             */
            object: "session";
            /** Id */
            id: string;
            /** Provider */
            provider: string;
            /**
             * Title
             * @description the provider's name on the button
             */
            title: string;
            /**
             * Browser
             * @description the `user-agent` of the sign-in
             */
            browser: string;
            /**
             * Address
             * @description the address of the sign-in
             */
            address: string;
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /**
             * Seen At
             * Format: date-time
             * @description the latest request, to a minute
             */
            seen_at: string;
            /**
             * Expires At
             * Format: date-time
             * @description the end, whatever is requested until then
             */
            expires_at: string;
            /**
             * Current
             * @description true: the session of this request
             */
            current: boolean;
        };
        /**
         * SessionsEnded
         * @description The end of several sessions.
         */
        SessionsEnded: {
            /**
             * Object
             * @constant
             */
            object: "sessions_ended";
            /**
             * Ended
             * @description the number of sessions
             */
            ended: number;
        };
        /**
         * SettingsChange
         * @description A change of the run-time settings.
         */
        SettingsChange: {
            /**
             * Object
             * @constant
             */
            object: "settings_change";
            /**
             * Version
             * @description the new version; of a dry run the newest
             */
            version: number;
            /** Dry Run */
            dry_run: boolean;
            /** Changes */
            changes: components["schemas"]["SettingsDifference"][];
        };
        /**
         * SettingsDifference
         * @description One changed option. Secrets are shown as `(secret)`.
         */
        SettingsDifference: {
            /** Path */
            path: string;
            /**
             * Change
             * @enum {string}
             */
            change: "added" | "changed" | "removed";
            /**
             * Before
             * @default null
             */
            before: unknown;
            /**
             * After
             * @default null
             */
            after: unknown;
        };
        /**
         * SettingsEntry
         * @description A vendor or a model of the settings.
         */
        SettingsEntry: {
            /** Name */
            name: string;
            /**
             * Origin
             * @description `file`: it can be changed in the settings file only
             * @enum {string}
             */
            origin: "file" | "run_time";
            /** Enabled */
            enabled: boolean;
            /**
             * Shadowed
             * @description true: the file has an entry of this name, which is used instead
             */
            shadowed: boolean;
            /**
             * Options
             * @description its table; a secret is `{"$secret": "kept"}`
             */
            options: {
                [key: string]: unknown;
            };
        };
        /**
         * SettingsLimit
         * @description A limit that can be changed while servers run.
         */
        SettingsLimit: {
            /**
             * Name
             * @description the dotted name of the setting, such as `jobs.max_waiting`
             */
            name: string;
            /**
             * Origin
             * @enum {string}
             */
            origin: "file" | "run_time" | "default";
            /**
             * Value
             * @description the value in use, a time in seconds; null: forever
             */
            value: number | null;
            /** Default */
            default: number | null;
            /**
             * Run Time
             * @description the value of the run-time settings; null if there is none
             */
            run_time: unknown;
            /**
             * Shadowed
             * @description true: the file sets this limit, so the value of the run-time settings waits
             */
            shadowed: boolean;
            /** Description */
            description: string;
        };
        /**
         * SettingsProcessRecord
         * @description A server or worker, and the version that it uses.
         */
        SettingsProcessRecord: {
            /** Name */
            name: string;
            /** Version */
            version: number;
            /**
             * Problem
             * @description the reason why it does not use the newest version
             */
            problem: string | null;
            /**
             * Seen At
             * Format: date-time
             */
            seen_at: string;
        };
        /**
         * SettingsVersionDetail
         * @description A version with all it holds, and what it changed of the one before.
         */
        SettingsVersionDetail: {
            /**
             * Object
             * @constant
             */
            object: "settings_version";
            /** Version */
            version: number;
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /** Actor */
            actor: string;
            /** Note */
            note: string;
            /**
             * Restored
             * @description the version that this one brought back
             */
            restored: number | null;
            /** Vendors */
            vendors: {
                [key: string]: unknown;
            };
            /** Models */
            models: {
                [key: string]: unknown;
            };
            /** Limits */
            limits: {
                [key: string]: unknown;
            };
            /** Changes */
            changes: components["schemas"]["SettingsDifference"][];
        };
        /**
         * SettingsVersionPage
         * @description One page of a list. Send `next_cursor` as `cursor` to get the next page.
         */
        SettingsVersionPage: {
            /**
             * Object
             * @constant
             */
            object: "list";
            /** Data */
            data: components["schemas"]["SettingsVersionRecord"][];
            /** Has More */
            has_more: boolean;
            /** Next Cursor */
            next_cursor: string | null;
        };
        /**
         * SettingsVersionRecord
         * @description A version of the run-time settings.
         */
        SettingsVersionRecord: {
            /**
             * Object
             * @constant
             */
            object: "settings_version";
            /** Version */
            version: number;
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /** Actor */
            actor: string;
            /** Note */
            note: string;
            /**
             * Restored
             * @description the version that this one brought back
             */
            restored: number | null;
        };
        /**
         * Shape
         * @description All fields are always present. New fields may be added.
         */
        Shape: Record<string, never>;
        /**
         * SharePage
         * @description One page of a list. Send `next_cursor` as `cursor` to get the next page.
         */
        SharePage: {
            /**
             * Object
             * @constant
             */
            object: "list";
            /** Data */
            data: components["schemas"]["ShareRecord"][];
            /** Has More */
            has_more: boolean;
            /** Next Cursor */
            next_cursor: string | null;
        };
        /**
         * ShareRecord
         * @description A public link to the outputs of one job.
         */
        ShareRecord: {
            /** Id */
            id: string;
            /**
             * Object
             * @constant
             */
            object: "share";
            /** Job Id */
            job_id: string;
            /**
             * Include Input
             * @description whether its page shows the prompt, or the input picture
             */
            include_input: boolean;
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /**
             * Expires At
             * Format: date-time
             * @description when the link ends, at the latest with its job
             */
            expires_at: string;
        };
        /**
         * ShareWithUrl
         * @description A share link with its address, which is shown only once.
         */
        ShareWithUrl: {
            /** Id */
            id: string;
            /**
             * Object
             * @constant
             */
            object: "share";
            /** Job Id */
            job_id: string;
            /**
             * Include Input
             * @description whether its page shows the prompt, or the input picture
             */
            include_input: boolean;
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /**
             * Expires At
             * Format: date-time
             * @description when the link ends, at the latest with its job
             */
            expires_at: string;
            /**
             * Url
             * @description opens without a key until `expires_at`, or until the link is revoked
             */
            url: string;
        };
        /**
         * SharedOutput
         * @description One output behind a share link.
         */
        SharedOutput: {
            kind: components["schemas"]["Kind"];
            role: components["schemas"]["Role"];
            /** Content Type */
            content_type: string;
            /** Bytes */
            bytes: number;
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
             * Sidecar Url
             * @description the signed sidecar of a 3D model
             */
            sidecar_url: string | null;
        };
        /**
         * SharedOutputs
         * @description The outputs that a share link shows.
         */
        SharedOutputs: {
            /**
             * Object
             * @constant
             */
            object: "share.outputs";
            /** Model */
            model: string;
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /**
             * Expires At
             * Format: date-time
             */
            expires_at: string;
            /**
             * Prompt
             * @description null unless the link includes the input
             */
            prompt: string | null;
            /**
             * Input Url
             * @description the input picture; null unless the link includes the input
             */
            input_url: string | null;
            /** Outputs */
            outputs: components["schemas"]["SharedOutput"][];
        };
        /**
         * SignInProvider
         * @description A provider by which one may sign in.
         */
        SignInProvider: {
            /** Name */
            name: string;
            /**
             * Title
             * @description the name on the button
             */
            title: string;
        };
        /**
         * SignInWays
         * @description The ways to sign in to the console.
         */
        SignInWays: {
            /**
             * Object
             * @constant
             */
            object: "sign_in";
            /**
             * Keys
             * @description true: the console offers to sign in by a key
             */
            keys: boolean;
            /** Providers */
            providers: components["schemas"]["SignInProvider"][];
            /**
             * Signed In
             * @description true: the cookie of this request is that of a session
             */
            signed_in: boolean;
        };
        /**
         * SignOut
         * @description The end of a session.
         */
        SignOut: {
            /**
             * Object
             * @constant
             */
            object: "sign_out";
            /**
             * Redirect
             * @description the address at which the provider ends its own session
             */
            redirect: string | null;
        };
        /**
         * SignerShape
         * @description The certificate that signed a file.
         */
        SignerShape: {
            /** Name */
            name: string;
            /** Organization */
            organization: string;
            /** Serial */
            serial: string;
            /** Algorithm */
            algorithm: string;
            /**
             * Time
             * @description by a time stamp authority, if there is one
             */
            time: string | null;
        };
        /**
         * State
         * @description The state of a job. Clients need not know this list: they loop on `done`.
         * @enum {string}
         */
        State: "queued" | "running" | "canceling" | "succeeded" | "failed" | "canceled" | "expired";
        /**
         * Status
         * @description The status of a delivery.
         * @enum {string}
         */
        Status: "pending" | "delivered" | "failed";
        /**
         * StepRecord
         * @description One step of a pipeline with its jobs: one, or one for each element of `for_each`.
         */
        StepRecord: {
            /** Name */
            name: string;
            /** Model */
            model: string;
            /**
             * Status
             * @enum {string}
             */
            status: "waiting" | "queued" | "running" | "succeeded" | "failed" | "canceled";
            /** Progress */
            progress: number;
            /**
             * Needs
             * @description the steps whose outputs it takes
             */
            needs: string[];
            /**
             * Is Fan Out
             * @description whether it has `for_each`
             */
            is_fan_out: boolean;
            on_error: components["schemas"]["OnError"];
            /**
             * Is Reused
             * @description whether its jobs are earlier ones, whose results are used again
             */
            is_reused: boolean;
            /** Job Ids */
            job_ids: string[];
            /**
             * Jobs
             * @description those not deleted; null in lists and events
             */
            jobs: components["schemas"]["JobRecord"][] | null;
        };
        /**
         * StorageShape
         * @description Bytes of files and assets that an account stores.
         */
        StorageShape: {
            /** Bytes */
            bytes: number;
            /** Quota */
            quota: number | null;
        };
        /**
         * TagBudgetList
         * @description The budgets of an account's tags, by tag and period.
         */
        TagBudgetList: {
            /**
             * Object
             * @constant
             */
            object: "list";
            /** Data */
            data: components["schemas"]["BudgetShape"][];
        };
        /**
         * TokenCount
         * @description The tokens of a request: as its vendor counts them, or else estimated.
         */
        TokenCount: {
            /** Input Tokens */
            input_tokens: number;
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
            /**
             * Cache Write Per Million
             * @description of prompt tokens that the vendor writes to its cache
             */
            cache_write_per_million: string;
            /**
             * Cache Write 1H Per Million
             * @description of those that it keeps for an hour
             */
            cache_write_1h_per_million: string;
            /** Output Per Million */
            output_per_million: string;
            /** Reasoning Per Million */
            reasoning_per_million: string;
            /** Per Request */
            per_request: string;
            /**
             * Per Million Characters
             * @description of text that is read aloud
             */
            per_million_characters: string;
            /**
             * Per Minute
             * @description of sound that is written down
             */
            per_minute: string;
            /**
             * Currency
             * @constant
             */
            currency: "USD";
        };
        /**
         * Transcript
         * @description OpenAI's transcript; vendors may add fields.
         */
        Transcript: {
            /** Text */
            text: string;
        } & {
            [key: string]: unknown;
        };
        /**
         * TypicalSeconds
         * @description Durations of such jobs on this server: half are faster than `p50`, nine in ten than `p90`.
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
         * UploadRecord
         * @description An upload in several requests.
         */
        UploadRecord: {
            /**
             * Object
             * @constant
             */
            object: "upload";
            /** Id */
            id: string;
            /**
             * Bytes
             * @description of the whole file
             */
            bytes: number;
            /**
             * Offset
             * @description bytes received
             */
            offset: number;
            /** Done */
            done: boolean;
            /**
             * File Token
             * @description of the file, once it is stored
             */
            file_token: string | null;
            /** Name */
            name: string | null;
            /**
             * Created At
             * Format: date-time
             */
            created_at: string;
            /**
             * Expires At
             * Format: date-time
             */
            expires_at: string;
        };
        /**
         * UpstreamShape
         * @description The vendor's error, without addresses and secrets.
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
         * @description Usage of one group. Only the groups of `by` are present.
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
             * @description among `prompt_tokens`: read from the vendor's cache
             */
            cached_tokens: number;
            /**
             * Cache Write Tokens
             * @description among `prompt_tokens`: written to the vendor's cache
             */
            cache_write_tokens: number;
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
             * @description number of requests whose tokens are estimated because the vendor did not report them
             */
            estimated: number;
            /**
             * Unpriced
             * @description number of requests and jobs that are not in `cost` because their price is not known
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
            /**
             * Tag
             * @description the tag; `other` or empty by `tag_part`
             * @default null
             */
            tag: string | null;
            /**
             * Tag Part
             * @default null
             */
            tag_part: ("value" | "other" | "none") | null;
            /**
             * End User
             * @description the end user; `other` or empty by `end_user_part`
             * @default null
             */
            end_user: string | null;
            /**
             * End User Part
             * @default null
             */
            end_user_part: ("value" | "other" | "none") | null;
            /**
             * Session
             * @description the session; `other` or empty by `session_part`
             * @default null
             */
            session: string | null;
            /**
             * Session Part
             * @default null
             */
            session_part: ("value" | "other" | "none") | null;
        };
        /**
         * UsageStatement
         * @description Usage from the first to the last day, and the current state of the budgets.
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
            /** @description each request once, also where the lines of tags overlap */
            total: components["schemas"]["UsageSums"];
            /** Budgets */
            budgets: components["schemas"]["BudgetShape"][];
            /** @description bytes stored now; null for all accounts together */
            storage: components["schemas"]["StorageShape"] | null;
        };
        /**
         * UsageSums
         * @description Sums of usage. `requests` counts chat requests.
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
             * @description among `prompt_tokens`: read from the vendor's cache
             */
            cached_tokens: number;
            /**
             * Cache Write Tokens
             * @description among `prompt_tokens`: written to the vendor's cache
             */
            cache_write_tokens: number;
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
             * @description number of requests whose tokens are estimated because the vendor did not report them
             */
            estimated: number;
            /**
             * Unpriced
             * @description number of requests and jobs that are not in `cost` because their price is not known
             */
            unpriced: number;
        };
        /**
         * VendorError
         * @description The error of the vendor's latest failed job.
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
         * @description A vendor, which runs models.
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
            /** @description of jobs that are still stored; for chat see `routes` */
            last_error: components["schemas"]["VendorError"] | null;
        };
        /**
         * VendorType
         * @description A type of vendors, as its own file describes it.
         */
        VendorType: {
            /**
             * Object
             * @constant
             */
            object: "vendor_type";
            /** Type */
            type: string;
            /** Title */
            title: string;
            /** About */
            about: string;
            /**
             * Kind
             * @enum {string}
             */
            kind: "chat" | "media";
            /**
             * Kinds
             * @description kinds of models that it runs
             */
            kinds: string[];
            /**
             * Built In
             * @description true: it runs inside Penstock and needs no account
             */
            built_in: boolean;
            /**
             * Declares
             * @description true: the settings may declare any other of its models
             */
            declares: boolean;
            /**
             * Secrets
             * @description options that are write-only
             */
            secrets: string[];
            /**
             * Models
             * @description its own models; for chat any name may be used
             */
            models: components["schemas"]["VendorTypeModel"][];
            /**
             * Options
             * @description its options as JSON Schema, without `type`
             */
            options: {
                [key: string]: unknown;
            };
        };
        /**
         * VendorTypeList
         * @description All types of vendors.
         */
        VendorTypeList: {
            /**
             * Object
             * @constant
             */
            object: "list";
            /** Data */
            data: components["schemas"]["VendorType"][];
        };
        /**
         * VendorTypeModel
         * @description A model that vendors of a type run.
         */
        VendorTypeModel: {
            /** Id */
            id: string;
            /** Kind */
            kind: string;
            /** Title */
            title: string;
        };
        /**
         * VerificationRecord
         * @description The origin of a file, as far as the file itself proves it.
         */
        VerificationRecord: {
            /**
             * Object
             * @constant
             */
            object: "verification";
            /**
             * Verdict
             * @enum {string}
             */
            verdict: "signed_here" | "signed_elsewhere" | "unsigned" | "tampered";
            /**
             * Is Trusted
             * @description whether this server signed it, or a signer that its operator trusts
             */
            is_trusted: boolean;
            /** Sha256 */
            sha256: string;
            /** Bytes */
            bytes: number;
            signer: components["schemas"]["SignerShape"] | null;
            /**
             * Generator
             * @description the program that wrote the manifest
             */
            generator: string | null;
            /**
             * Made By Ai
             * @description whether the manifest says so; null without one
             */
            made_by_ai: boolean | null;
            /**
             * Generation
             * @description job, model, vendor, seed and inputs, if Penstock made it
             */
            generation: {
                [key: string]: unknown;
            } | null;
            /** Problems */
            problems: components["schemas"]["ProblemShape"][];
            /** Parents */
            parents: components["schemas"]["ParentManifestShape"][];
        };
        /**
         * VideoDeleted
         * @description A video that was deleted.
         */
        VideoDeleted: {
            /** Id */
            id: string;
            /**
             * Object
             * @constant
             */
            object: "video.deleted";
            /**
             * Deleted
             * @constant
             */
            deleted: true;
        };
        /**
         * VideoPage
         * @description One page of the videos. Send `last_id` as `after` to get the next page.
         */
        VideoPage: {
            /**
             * Object
             * @constant
             */
            object: "list";
            /** Data */
            data: components["schemas"]["VideoRecord"][];
            /** First Id */
            first_id: string | null;
            /** Last Id */
            last_id: string | null;
            /** Has More */
            has_more: boolean;
        };
        /**
         * VideoProblem
         * @description Why a video was not made. A canceled one has the code `job_canceled`.
         */
        VideoProblem: {
            /** Code */
            code: string;
            /** Message */
            message: string;
        };
        /**
         * VideoRecord
         * @description A job that makes a film, as OpenAI's clients read it.
         */
        VideoRecord: {
            /** Id */
            id: string;
            /**
             * Object
             * @constant
             */
            object: "video";
            /** Created At */
            created_at: number;
            /** Completed At */
            completed_at: number | null;
            /** Expires At */
            expires_at: number | null;
            /**
             * Status
             * @enum {string}
             */
            status: "queued" | "in_progress" | "completed" | "failed";
            /** Model */
            model: string;
            /** Progress */
            progress: number;
            /** Seconds */
            seconds: string;
            /** Size */
            size: string;
            /** Prompt */
            prompt: string | null;
            /** Remixed From Video Id */
            remixed_from_video_id: string | null;
            error: components["schemas"]["VideoProblem"] | null;
        };
        /**
         * WebhookPage
         * @description One page of a list. Send `next_cursor` as `cursor` to get the next page.
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
         * @description An address that receives events.
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
             * @description when its current failures began; null: the last attempt succeeded
             */
            failing_since: string | null;
            /**
             * Former Secret Until
             * @description the former secret also signs until then
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
         * @description The secret that signs deliveries to the `webhook` of generation requests.
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
         * @description A webhook with its secret, which is shown only once.
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
             * @description when its current failures began; null: the last attempt succeeded
             */
            failing_since: string | null;
            /**
             * Former Secret Until
             * @description the former secret also signs until then
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
            /**
             * Content Log
             * @description true: prompts and answers of its keys are logged
             * @default false
             */
            content_log: boolean;
        };
        /**
         * AccountKeyBody
         * @description A new key of the account, or of the person who makes it.
         * @example {
         *       "budgets": [
         *         {
         *           "cap": "10.00",
         *           "period": "month"
         *         }
         *       ],
         *       "name": "notebook"
         *     }
         */
        AccountKeyBody: {
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
             * @description seconds from now until it ends, instead of `expires_at`
             * @default null
             */
            expires_in: number | null;
            /**
             * Reuse
             * @description exact: its generations get the kept results of equal requests, free of charge
             * @default null
             */
            reuse: "exact" | null;
            /**
             * Tags
             * @description tags of all its requests, which callers cannot remove; none or empty: no tags
             * @default null
             */
            tags: string[] | null;
        };
        /**
         * AccountPatch
         * @description Changes to an account.
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
             * @description a new name; the id does not change
             * @default null
             */
            name: string | null;
            /**
             * @description the limits to change; null removes one
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
            /**
             * Content Log
             * @description true: prompts and answers of its keys are logged
             * @default null
             */
            content_log: boolean | null;
        };
        /**
         * BudgetBody
         * @description A hard limit on spending in a period.
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
         * @description Limits and budgets of something new.
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
         * ConnectionTestBody
         * @description A vendor's table that is not stored yet. Without it, the stored vendor is tested.
         * @example {
         *       "options": {
         *         "api_key": "sk-…",
         *         "type": "openai_compatible"
         *       }
         *     }
         */
        ConnectionTestBody: {
            /**
             * Options
             * @description the table, as in a change
             * @default null
             */
            options: {
                [key: string]: unknown;
            } | null;
        };
        /**
         * InviteBody
         * @description A person who gets a role in the account.
         * @example {
         *       "email": "ada@example.org",
         *       "role": "member"
         *     }
         */
        InviteBody: {
            /**
             * Email
             * @description the address by which the person is known
             */
            email: string;
            /**
             * Name
             * @description the person's name, if the person is new here
             * @default null
             */
            name: string | null;
            /** @description the role in the account */
            role: components["schemas"]["PersonRole"];
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
             * @description seconds from now until it ends, instead of `expires_at`
             * @default null
             */
            expires_in: number | null;
            /**
             * Reuse
             * @description exact: its generations get the kept results of equal requests, free of charge
             * @default null
             */
            reuse: "exact" | null;
            /**
             * Tags
             * @description tags of all its requests, which callers cannot remove; none or empty: no tags
             * @default null
             */
            tags: string[] | null;
            /**
             * Account
             * @description the account's id or name
             */
            account: string;
            /**
             * Content Log
             * @description true: prompts and answers of its requests are logged; false: they are not; null: as its account has it
             * @default null
             */
            content_log: boolean | null;
        };
        /**
         * KeyFields
         * @description Name, permissions, end and defaults of a key.
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
             * @description seconds from now until it ends, instead of `expires_at`
             * @default null
             */
            expires_in: number | null;
            /**
             * Reuse
             * @description exact: its generations get the kept results of equal requests, free of charge
             * @default null
             */
            reuse: "exact" | null;
            /**
             * Tags
             * @description tags of all its requests, which callers cannot remove; none or empty: no tags
             * @default null
             */
            tags: string[] | null;
        };
        /**
         * KeyPatch
         * @description Changes to a key. Null removes a value.
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
             * @description seconds from now until it ends, instead of `expires_at`
             * @default null
             */
            expires_in: number | null;
            /**
             * Reuse
             * @description exact: its generations get the kept results of equal requests, free of charge
             * @default null
             */
            reuse: "exact" | null;
            /**
             * Tags
             * @description tags of all its requests, which callers cannot remove; none or empty: no tags
             * @default null
             */
            tags: string[] | null;
            /**
             * Content Log
             * @description true: prompts and answers of its requests are logged; false: they are not; null: as its account has it
             * @default null
             */
            content_log: boolean | null;
            /**
             * @description the limits to change; null removes one
             * @default null
             */
            limits: components["schemas"]["LimitsBody"] | null;
        };
        /**
         * KeyPolicyBody
         * @description The limits of an account for keys of its people.
         * @example {
         *       "max_budget": "20.00",
         *       "max_keys": 5
         *     }
         */
        KeyPolicyBody: {
            /**
             * Max Keys
             * @description working keys that one person may have
             */
            max_keys: number;
            /**
             * Max Budget
             * @description USD that a new key may spend in a month, as a decimal string; null: any amount
             * @default null
             */
            max_budget: string | number | null;
        };
        /**
         * LimitsBody
         * @description Limits. One that you leave out stays as it is, or is not set.
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
         * NewKey
         * @description The attributes of a new key.
         */
        NewKey: {
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
             * @description seconds from now until it ends, instead of `expires_at`
             * @default null
             */
            expires_in: number | null;
            /**
             * Reuse
             * @description exact: its generations get the kept results of equal requests, free of charge
             * @default null
             */
            reuse: "exact" | null;
            /**
             * Tags
             * @description tags of all its requests, which callers cannot remove; none or empty: no tags
             * @default null
             */
            tags: string[] | null;
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
            /** @description `total` never resets; the others reset each day or month */
            period: components["schemas"]["Period"];
        };
        /**
         * PersonBody
         * @description A new person.
         * @example {
         *       "email": "ada@example.org",
         *       "name": "Ada"
         *     }
         */
        PersonBody: {
            /**
             * Email
             * @description the address by which the person is known
             */
            email: string;
            /**
             * Name
             * @description the person's name
             * @default null
             */
            name: string | null;
            /**
             * Operator
             * @description true: the person administers the whole server
             * @default false
             */
            operator: boolean;
        };
        /**
         * PersonPatch
         * @description Changes to a person.
         * @example {
         *       "active": false
         *     }
         */
        PersonPatch: {
            /**
             * Operator
             * @description true: the person administers the whole server
             * @default null
             */
            operator: boolean | null;
            /**
             * Active
             * @description false: the person's roles and keys end; true: they can be given again
             * @default null
             */
            active: boolean | null;
        };
        /**
         * PipelineBody
         * @description Steps or the name of a template, and optional fields.
         * @example {
         *       "params": {
         *         "prompt": "a red fox"
         *       },
         *       "steps": [
         *         {
         *           "model": "sketch_1",
         *           "name": "picture",
         *           "params": {
         *             "prompt": {
         *               "param": "prompt"
         *             }
         *           }
         *         },
         *         {
         *           "model": "still_film",
         *           "name": "film",
         *           "params": {
         *             "frame_images": [
         *               {
         *                 "step": "picture"
         *               }
         *             ]
         *           }
         *         }
         *       ]
         *     }
         */
        PipelineBody: {
            /**
             * Steps
             * @description a list, or an object of steps by name
             * @default null
             */
            steps: components["schemas"]["PipelineStepBody"][] | null;
            /**
             * Template
             * @description name of a stored pipeline, instead of `steps`
             * @default null
             */
            template: string | null;
            /**
             * Version
             * @description version of the template; default: the newest
             * @default null
             */
            version: number | null;
            /**
             * Params
             * @description values for `{"param": …}`
             * @default null
             */
            params: {
                [key: string]: unknown;
            } | null;
            /**
             * On Error
             * @description default: `stop`
             * @default null
             */
            on_error: ("stop" | "continue") | null;
            /** @default null */
            webhook: components["schemas"]["PipelineWebhook"] | null;
            /**
             * Client Ref
             * @description yours; echoed, also by the jobs
             * @default null
             */
            client_ref: string | null;
            /**
             * Metadata
             * @description yours; echoed, also by the jobs
             * @default null
             */
            metadata: {
                [key: string]: string;
            } | null;
            /**
             * Start Timeout
             * @description seconds until a job must have started, once its inputs are there
             * @default null
             */
            start_timeout: number | null;
            /**
             * Run Timeout
             * @description seconds each job may run once started
             * @default null
             */
            run_timeout: number | null;
            /**
             * Retention
             * @description seconds that it is kept once done, or "forever"
             * @default null
             */
            retention: number | "forever" | null;
            /**
             * @description `exact`: get the kept result of an equal request of yours, free of charge; `off`: a new one; default: as the key
             * @default null
             */
            reuse: components["schemas"]["Reuse"] | null;
            /**
             * Dry Run
             * @description validate and price, but create nothing
             * @default null
             */
            dry_run: boolean | null;
        };
        /**
         * PipelineRetryBody
         * @description The step from which to repeat a pipeline.
         * @example {
         *       "from": "film"
         *     }
         */
        PipelineRetryBody: {
            /**
             * From
             * @description repeat this step and all that need it; default: what did not succeed
             * @default null
             */
            from: string | null;
            /**
             * Params
             * @description replaces some of the pipeline's own params
             * @default null
             */
            params: {
                [key: string]: unknown;
            } | null;
        };
        /**
         * PipelineStepBody
         * @description One step: a generation, or one for each element of a list.
         */
        PipelineStepBody: {
            /**
             * Name
             * @description by which other steps refer to it
             */
            name: string;
            /**
             * Model
             * @description model id
             */
            model: string;
            /**
             * Params
             * @description the model's own params, with references
             * @default {}
             */
            params: {
                [key: string]: unknown;
            };
            /**
             * For Each
             * @description a list, `{"param": …}` with a list, or `{"step": …}` of a step with `for_each`
             * @default null
             */
            for_each: unknown[] | {
                [key: string]: unknown;
            } | null;
            /**
             * On Error
             * @description default: that of the pipeline
             * @default null
             */
            on_error: ("stop" | "continue") | null;
        };
        /**
         * PipelineTemplateBody
         * @description A pipeline to store.
         * @example {
         *       "params": {
         *         "prompt": "a red fox"
         *       },
         *       "steps": [
         *         {
         *           "model": "sketch_1",
         *           "name": "picture",
         *           "params": {
         *             "prompt": {
         *               "param": "prompt"
         *             }
         *           }
         *         },
         *         {
         *           "model": "still_film",
         *           "name": "film",
         *           "params": {
         *             "frame_images": [
         *               {
         *                 "step": "picture"
         *               }
         *             ]
         *           }
         *         }
         *       ]
         *     }
         */
        PipelineTemplateBody: {
            /**
             * Steps
             * @description a list, or an object of steps by name
             */
            steps: components["schemas"]["PipelineStepBody"][];
            /**
             * On Error
             * @description default: `stop`
             * @default null
             */
            on_error: ("stop" | "continue") | null;
            /**
             * Params
             * @description defaults of its own params
             * @default null
             */
            params: {
                [key: string]: unknown;
            } | null;
            /**
             * Description
             * @default null
             */
            description: string | null;
        };
        /**
         * PipelineWebhook
         * @description The endpoint for the events of this pipeline.
         */
        PipelineWebhook: {
            /** Url */
            url: string;
            /**
             * Events
             * @description default: the three that end a pipeline; those of jobs may be named, too
             * @default null
             */
            events: (components["schemas"]["PipelineEventType"] | components["schemas"]["EventType"])[] | null;
        };
        /**
         * PricePreviewBody
         * @description A list to compare with the prices here: its place, or its text.
         * @example {
         *       "from": "shipped"
         *     }
         */
        PricePreviewBody: {
            /**
             * From
             * @description `shipped`, or the URL of a list in LiteLLM's, OpenRouter's or our own form
             * @default null
             */
            from: string | null;
            /**
             * Text
             * @description the text of a list, in place of `from`
             * @default null
             */
            text: string | null;
            /**
             * Effective
             * @description when the prices begin, unless the list says later
             * @default null
             */
            effective: string | null;
            /**
             * Providers
             * @description by vendor: the provider whose entries are its prices
             * @default null
             */
            providers: {
                [key: string]: string;
            } | null;
            /**
             * Entries
             * @description by `vendor/model`: the entry of the list
             * @default null
             */
            entries: {
                [key: string]: string;
            } | null;
            /**
             * Credits
             * @description by vendor or provider: USD for one of its credits
             * @default null
             */
            credits: {
                [key: string]: string;
            } | null;
        };
        /**
         * PriceWish
         * @description A price that is to be in force at a vendor.
         */
        PriceWish: {
            /**
             * Model
             * @description the id of the model here
             */
            model: string;
            /**
             * Vendor
             * @description the name of the vendor here
             */
            vendor: string;
            /**
             * From
             * @description when it begins; default: now
             * @default null
             */
            from: string | null;
            /**
             * Until
             * @description when it ends; default: never
             * @default null
             */
            until: string | null;
            /**
             * Price
             * @description the price, as the settings write it
             */
            price: {
                [key: string]: unknown;
            };
            /**
             * Source
             * @description where the price was found
             * @default
             */
            source: string;
        };
        /**
         * PricesBody
         * @description Prices to write, as a preview proposed them.
         * @example {
         *       "prices": [
         *         {
         *           "model": "vendorb_video_31",
         *           "price": {
         *             "per_second": "0.40"
         *           },
         *           "vendor": "veo"
         *         }
         *       ],
         *       "version": 0
         *     }
         */
        PricesBody: {
            /**
             * Version
             * @description the `version` of the prices that you saw
             */
            version: number;
            /** Prices */
            prices: components["schemas"]["PriceWish"][];
        };
        /**
         * ReasonBody
         * @description The reason for a correction of the ledger.
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
         * RestoreBody
         * @description Options for bringing back a version.
         * @example {
         *       "base_version": 4
         *     }
         */
        RestoreBody: {
            /**
             * Base Version
             * @description the version that you have read; or use `If-Match`
             * @default null
             */
            base_version: number | null;
            /**
             * Note
             * @description the reason, for the history
             * @default
             */
            note: string;
            /**
             * Dry Run
             * @description true: check the version and show what changes, store nothing
             * @default false
             */
            dry_run: boolean;
        };
        /**
         * Reuse
         * @description Reuse of kept results: an equal request may be answered with one.
         * @enum {string}
         */
        Reuse: "exact" | "off";
        /**
         * RoleBody
         * @description A role in an account.
         * @example {
         *       "role": "viewer"
         *     }
         */
        RoleBody: {
            /** @description the role in the account */
            role: components["schemas"]["PersonRole"];
        };
        /**
         * RotateBody
         * @description Options for the rotation of a key.
         * @example {
         *       "overlap_seconds": 3600
         *     }
         */
        RotateBody: {
            /**
             * Overlap Seconds
             * @description seconds that the old key still works; 0: it ends at once
             * @default 86400
             */
            overlap_seconds: number;
        };
        /**
         * SettingsBody
         * @description All run-time settings, such as those of an export. Entries that are left out are removed.
         * @example {
         *       "base_version": 3,
         *       "models": {},
         *       "vendors": {}
         *     }
         */
        SettingsBody: {
            /**
             * Vendors
             * @description tables of vendors, each with `enabled`
             * @default null
             */
            vendors: {
                [key: string]: unknown;
            } | null;
            /**
             * Models
             * @description tables of models, each with `enabled`
             * @default null
             */
            models: {
                [key: string]: unknown;
            } | null;
            /**
             * Limits
             * @description limits of the settings file by dotted name, such as `jobs.max_waiting`
             * @default null
             */
            limits: {
                [key: string]: unknown;
            } | null;
            /**
             * Base Version
             * @description the version that you have read; or use `If-Match`
             * @default null
             */
            base_version: number | null;
            /**
             * Note
             * @description the reason, for the history
             * @default
             */
            note: string;
            /**
             * Dry Run
             * @description true: check the change, and store nothing
             * @default false
             */
            dry_run: boolean;
        };
        /**
         * SettingsParts
         * @description Vendors, models and limits by name. In a change, null removes an entry.
         */
        SettingsParts: {
            /**
             * Vendors
             * @description tables of vendors, each with `enabled`
             * @default null
             */
            vendors: {
                [key: string]: unknown;
            } | null;
            /**
             * Models
             * @description tables of models, each with `enabled`
             * @default null
             */
            models: {
                [key: string]: unknown;
            } | null;
            /**
             * Limits
             * @description limits of the settings file by dotted name, such as `jobs.max_waiting`
             * @default null
             */
            limits: {
                [key: string]: unknown;
            } | null;
        };
        /**
         * SettingsPatch
         * @description Entries of the run-time settings to set as a whole, or to remove. All others stay.
         * @example {
         *       "base_version": 3,
         *       "vendors": {
         *         "acme": {
         *           "api_key": "sk-…",
         *           "type": "openai_compatible"
         *         }
         *       }
         *     }
         */
        SettingsPatch: {
            /**
             * Vendors
             * @description tables of vendors, each with `enabled`
             * @default null
             */
            vendors: {
                [key: string]: unknown;
            } | null;
            /**
             * Models
             * @description tables of models, each with `enabled`
             * @default null
             */
            models: {
                [key: string]: unknown;
            } | null;
            /**
             * Limits
             * @description limits of the settings file by dotted name, such as `jobs.max_waiting`
             * @default null
             */
            limits: {
                [key: string]: unknown;
            } | null;
            /**
             * Base Version
             * @description the version that you have read; or use `If-Match`
             * @default null
             */
            base_version: number | null;
            /**
             * Note
             * @description the reason, for the history
             * @default
             */
            note: string;
            /**
             * Dry Run
             * @description true: check the change, and store nothing
             * @default false
             */
            dry_run: boolean;
        };
        /**
         * ShareBody
         * @description The life of a new share link, and what its page shows.
         * @example {
         *       "expires_in": 604800,
         *       "include_input": false
         *     }
         */
        ShareBody: {
            /**
             * Expires In
             * @description seconds for which the link works, up to 90 days; default: 7 days
             * @default null
             */
            expires_in: number | null;
            /**
             * Expires At
             * @description when the link ends, instead of `expires_in`
             * @default null
             */
            expires_at: string | null;
            /**
             * Include Input
             * @description true: the page also shows the prompt, or the input picture; default: false
             * @default null
             */
            include_input: boolean | null;
        };
        /**
         * TagBudgetBody
         * @description A hard limit on spending with a tag in a period.
         * @example {
         *       "cap": "50.00",
         *       "period": "month",
         *       "tag": "team-search"
         *     }
         */
        TagBudgetBody: {
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
            /** @description `total` never resets; the others reset each day or month */
            period: components["schemas"]["Period"];
            /**
             * Tag
             * @description 1 to 64 printable characters without a comma
             */
            tag: string;
        };
        /**
         * VerifyRequest
         * @description A file that this server has: exactly one of `file_token` and `job`.
         * @example {
         *       "job": "job_…",
         *       "output": "primary"
         *     }
         */
        VerifyRequest: {
            /**
             * File Token
             * @description token of an upload
             * @default null
             */
            file_token: string | null;
            /**
             * Job
             * @description id of a succeeded job of yours
             * @default null
             */
            job: string | null;
            /**
             * Output
             * @description which output of `job`: its number, `primary` or `preview`; default `primary`
             * @default null
             */
            output: number | ("primary" | "preview") | null;
            /**
             * Sidecar
             * @description the signed sidecar of a 3D model, the text at its `sidecar_url`; that of an output is found
             * @default null
             */
            sidecar: string | null;
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
             * @description http or https, public addresses only; redirects are not followed
             */
            url: string;
            /**
             * Events
             * @description default: the four events that end a job
             * @default null
             */
            events: (components["schemas"]["EventType"] | components["schemas"]["PipelineEventType"] | "budget.threshold")[] | null;
            /**
             * Description
             * @description your note
             * @default null
             */
            description: string | null;
        };
        /**
         * WebhookPatch
         * @description Changes to a webhook.
         * @example {
         *       "disabled": false
         *     }
         */
        WebhookPatch: {
            /**
             * Url
             * @description the new address, also for deliveries that are pending
             * @default null
             */
            url: string | null;
            /**
             * Events
             * @description the events to send from now on
             * @default null
             */
            events: (components["schemas"]["EventType"] | components["schemas"]["PipelineEventType"] | "budget.threshold")[] | null;
            /**
             * Description
             * @description your note
             * @default null
             */
            description: string | null;
            /**
             * Disabled
             * @description true: send nothing; false: send again
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
         * @description The endpoint for the events of this request.
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
         * Ending
         * @description The ending of a simulated job.
         * @enum {string}
         */
        Ending: "succeeded" | "failed" | "filtered" | "no_output" | "corrupt" | "wrong_size" | "never";
        /**
         * Submission
         * @description The fate of the submit call.
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
