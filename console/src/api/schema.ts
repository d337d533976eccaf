// Written by `make docs` from the API's own description. Change that, never this.

export type Absence = {
  readonly query: string;
  readonly owner?: OwnerName;
  readonly limit?: number | null;
  readonly where?: Record<string, unknown> | null;
  readonly types?: ReadonlyArray<string> | null;
  readonly since?: string | null;
  readonly until?: string | null;
  readonly as_of?: string | null;
  readonly min_importance?: number | null;
  readonly collections?: ReadonlyArray<string> | null;
  readonly id: string;
};

export type Activation = {
  readonly session_id: string;
  readonly instead_of?: string | null;
};

export type Active = {
  readonly agent_id: string;
  readonly session_id: string | null;
  readonly last_active_at: string | null;
  readonly created_at: string | null;
};

export type ActiveChange = {
  readonly active: boolean;
  readonly version?: number | null;
};

export type AddedDocument = {
  readonly document: Document;
  readonly job: IngestJob | null;
};

export type AgentChange = {
  readonly instructions: string;
  readonly description?: string;
  readonly model?: string | null;
  readonly tools?: ReadonlyArray<string>;
  readonly memory?: boolean;
  readonly approve?: ReadonlyArray<string>;
  readonly limits?: Limits;
  readonly knowledge?: boolean | ReadonlyArray<string>;
  readonly active?: boolean;
  readonly version?: number | null;
};

export type AgentEntry = {
  readonly name: string;
  readonly kind: "llm" | "system" | "ui";
  readonly description: string;
  readonly active: boolean;
  readonly served: boolean;
};

export type AgentList = {
  readonly agents: ReadonlyArray<AgentEntry>;
  readonly chosen: string | null;
};

export type AgentRun = {
  readonly id: string;
  readonly agent: string;
  readonly conversation: string;
  readonly number: number;
  readonly trigger: string;
  readonly trigger_seq: number;
  readonly attempt: number;
  readonly retry_of: string | null;
  readonly user: string | null;
  readonly state: "cancelled" | "done" | "failed" | "queued" | "running" | "waiting";
  readonly token: number;
  readonly claims: number;
  readonly steps: number;
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly cost: number;
  readonly model: string | null;
  readonly answer: string | null;
  readonly error: Record<string, unknown> | null;
  readonly created_at: string;
  readonly started_at: string | null;
  readonly finished_at: string | null;
  readonly merged?: ReadonlyArray<number>;
  readonly claimed_revision?: number | null;
};

export type AgentSkill = {
  readonly config?: {
  readonly arguments?: Record<string, unknown>;
  readonly defaults?: Record<string, unknown>;
  readonly timeout?: number;
  readonly approve?: boolean;
};
  readonly priority?: number;
  readonly sequence?: number;
  readonly active?: boolean;
  readonly version?: number | null;
};

export type AgentSkillList = {
  readonly skills: ReadonlyArray<Assignment>;
};

export type Approval = {
  readonly id: string;
  readonly run_id: string;
  readonly conversation: string;
  readonly call_id: string;
  readonly tool: string;
  readonly arguments: unknown;
  readonly user: string | null;
  readonly reason: "listed" | "unknown";
  readonly state: "approved" | "denied" | "pending" | "withdrawn";
  readonly decided_by: string | null;
  readonly comment: string | null;
  readonly created_at: string;
  readonly decided_at: string | null;
};

export type ApprovalList = {
  readonly approvals: ReadonlyArray<Approval>;
};

export type Assignment = {
  readonly agent: string;
  readonly skill: string;
  readonly config: Record<string, unknown>;
  readonly priority: number;
  readonly sequence: number;
  readonly active: boolean;
  readonly version: number;
  readonly updated_at: string;
  readonly updated_by: string;
};

export type AuditNews = {
  readonly entries: ReadonlyArray<RecordedEntry>;
  readonly after: number;
};

export type AuditPage = {
  readonly entries: ReadonlyArray<RecordedEntry>;
  readonly cursor: number | null;
};

export type AuthScheme = {
  readonly name: string;
  readonly kind: "basic" | "bearer" | "cookie" | "header" | "query";
  readonly parameter?: string;
};

export type Backend = {
  readonly source?: string;
  readonly base_url?: string | null;
  readonly auth?: Record<string, string>;
  readonly headers?: Record<string, string>;
  readonly timeout?: number | null;
  readonly mcp?: McpServer | null;
  readonly identity?: BackendIdentity | null;
};

export type BackendIdentity = {
  readonly kind: "client_credentials" | "pass_through" | "signed" | "token_exchange" | "user";
  readonly audience?: string;
  readonly resource?: string;
  readonly scopes?: ReadonlyArray<string>;
  readonly issuer?: string;
  readonly token_url?: string;
  readonly authorize_url?: string;
  readonly client_id?: string;
  readonly client_secret?: string;
  readonly client_auth?: "basic" | "post";
  readonly actor?: boolean;
  readonly requested?: "access_token" | "jwt";
  readonly fallback?: "client_credentials" | "signed" | null;
};

export type BodyField = {
  readonly argument: string;
  readonly name: string;
  readonly content_type?: string | null;
  readonly style?: "deepObject" | "form" | "label" | "matrix" | "pipeDelimited" | "simple" | "spaceDelimited" | "tabDelimited" | null;
  readonly explode?: boolean | null;
};

export type Budget = {
  readonly calls?: number;
  readonly tokens?: number;
  readonly cost?: number | null;
};

export type Burial = {
  readonly buried?: boolean;
};

export type CallToExplain = {
  readonly tool: string;
  readonly user?: string | null;
  readonly agent?: string | null;
  readonly key?: string | null;
  readonly scopes?: ReadonlyArray<"act-as" | "admin" | "operator" | "read" | "write"> | null;
  readonly arguments?: Record<string, unknown> | null;
  readonly at?: string | null;
};

export type ChainProgress = {
  readonly seq: number;
  readonly hash: string;
  readonly checkpoint?: string;
  readonly verified?: number;
  readonly erased?: number;
  readonly erasures?: number;
  readonly unexplained?: number;
  readonly attested?: boolean;
};

export type ChangeRecord = {
  readonly revision: number;
  readonly number: number;
  readonly kind: "agent" | "agent_skill" | "secret" | "skill" | "skill_dependency" | "skill_tool" | "source" | "tool";
  readonly name: string;
  readonly operation: "changed" | "created" | "removed";
  readonly before: Record<string, unknown> | null;
  readonly after: Record<string, unknown> | null;
  readonly by: string;
  readonly at: string;
};

export type ChangedDecision = {
  readonly tool: string;
  readonly user: string | null;
  readonly agent: string | null;
  readonly at: string;
  readonly allowed: boolean;
  readonly rule: string;
};

export type ChangedTool = {
  readonly name: string;
  readonly what: ReadonlyArray<string>;
};

export type ChatReply = {
  readonly state: "cancelled" | "done" | "queued" | "waiting";
  readonly reply: string | null;
  readonly session_id: string;
  readonly agent_id: string;
  readonly conversation_id: string;
  readonly run_id: string;
  readonly node_id: string | null;
  readonly cursor: string;
  readonly usage: Record<string, unknown>;
  readonly approvals: ReadonlyArray<Approval>;
  readonly note?: string;
};

export type ChatRequest = {
  readonly message: string;
  readonly session_id?: string | null;
  readonly agent_id?: string | null;
  readonly busy?: "enqueue" | "fork" | "interrupt" | "merge" | "reject";
  readonly key?: string | null;
};

export type Choice = {
  readonly everything?: boolean;
  readonly operations?: ReadonlyArray<string>;
  readonly tags?: ReadonlyArray<string>;
  readonly paths?: ReadonlyArray<string>;
};

export type Chosen = {
  readonly everything?: boolean;
  readonly operations?: ReadonlyArray<string>;
  readonly tags?: ReadonlyArray<string>;
  readonly paths?: ReadonlyArray<string>;
};

export type ChunkPage = {
  readonly chunks: ReadonlyArray<DocumentChunk>;
  readonly cursor: number | null;
};

export type Citation = {
  readonly number: number;
  readonly chunk: string;
  readonly document: string;
  readonly name: string;
  readonly start: number;
  readonly end: number;
  readonly version: number;
  readonly index: number;
  readonly title?: string | null;
  readonly section?: ReadonlyArray<string>;
  readonly page?: number | null;
  readonly last_page?: number | null;
  readonly quote?: string | null;
};

export type CitedStatement = {
  readonly text: string;
  readonly citations: ReadonlyArray<Citation>;
  readonly heading?: string | null;
};

export type ClaimedTurn = {
  readonly conversation: string;
  readonly number: number;
  readonly held: boolean;
  readonly interrupted?: boolean;
};

export type CollectionCount = {
  readonly name: string;
  readonly documents: number;
  readonly chunks: number;
};

export type Collections = {
  readonly collections: ReadonlyArray<CollectionCount>;
};

export type Command = {
  readonly correlation_id: string;
  readonly skill: string;
  readonly arguments: Record<string, unknown>;
  readonly reply_to: string;
  readonly headers: Record<string, string>;
  readonly priority: number;
  readonly state: "cancelled" | "dead" | "done" | "failed" | "queued" | "running";
  readonly run_at: string;
  readonly attempts: number;
  readonly max_attempts: number | null;
  readonly worker: string | null;
  readonly leased_until: string | null;
  readonly error: string | null;
  readonly created_at: string;
  readonly started_at: string | null;
  readonly finished_at: string | null;
};

export type CommandPage = {
  readonly commands: ReadonlyArray<Command>;
  readonly cursor: string | null;
};

export type CommandState = {
  readonly command: Command;
  readonly completion: Completion | null;
};

export type Completion = {
  readonly correlation_id: string;
  readonly id: string;
  readonly applied: boolean;
  readonly result: unknown;
  readonly error: Record<string, unknown> | null;
  readonly worker: string | null;
  readonly at: string;
};

export type CompletionList = {
  readonly completions: ReadonlyArray<Completion>;
};

export type Connection = {
  readonly source: string;
  readonly title: string;
  readonly host: string;
  readonly state: "connected" | "expired" | "not_connected";
  readonly reason?: string;
  readonly issuer?: string;
  readonly scopes?: ReadonlyArray<string>;
  readonly connected_at?: string | null;
  readonly updated_at?: string | null;
};

export type ConnectionList = {
  readonly connections: ReadonlyArray<Connection>;
};

export type ConsentAnswer = {
  readonly state: string;
  readonly code?: string | null;
  readonly iss?: string | null;
  readonly error?: string | null;
};

export type ConsentUrl = {
  readonly source: string;
  readonly url: string;
  readonly expires_at: string;
};

export type ContextSearch = {
  readonly query: string;
  readonly session?: string | null;
  readonly user?: string | null;
  readonly agent?: string | null;
  readonly limits?: Record<string, number>;
  readonly where?: Record<string, unknown> | null;
  readonly types?: ReadonlyArray<string> | null;
  readonly collections?: ReadonlyArray<string> | null;
  readonly explain?: boolean;
};

export type Conversation = {
  readonly id: string;
  readonly kind: "conversation" | "document";
  readonly session_id: string | null;
  readonly app: string;
  readonly user: string | null;
  readonly agent: string | null;
  readonly revision: number;
  readonly last_seq: number;
  readonly forked_from: string | null;
  readonly forked_at: number | null;
  readonly created_at: string;
  readonly updated_at: string;
  readonly ended_at: string | null;
};

export type ConversationFork = {
  readonly at?: number | null;
  readonly session_id?: string | null;
};

export type ConversationPage = {
  readonly conversations: ReadonlyArray<Conversation>;
  readonly cursor: string | null;
  readonly openings?: Record<string, string>;
};

export type DailyUsage = {
  readonly day: string;
  readonly user: string | null;
  readonly agent: string | null;
  readonly model: string;
  readonly calls: number;
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly cost: number;
};

export type DeadLetter = {
  readonly id: string;
  readonly group: string;
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
  readonly at: string;
  readonly record_id: string;
  readonly key: string | null;
  readonly headers: Record<string, string>;
  readonly value: unknown;
  readonly correlation_id: string | null;
  readonly error: string;
  readonly attempts: number;
  readonly failed_at: string;
  readonly state: string;
};

export type DeadLetterPage = {
  readonly dead_letters: ReadonlyArray<DeadLetter>;
  readonly cursor: string | null;
};

export type DecidedProposals = {
  readonly state: "approved" | "open" | "rejected" | "withdrawn";
  readonly tools: ReadonlyArray<string>;
  readonly stored: ReadonlyArray<string>;
};

export type Definition = {
  readonly id: string;
  readonly name: string;
  readonly kind: "llm" | "system" | "ui";
  readonly description: string;
  readonly instructions: string;
  readonly model: string | null;
  readonly tools: ReadonlyArray<string>;
  readonly memory: boolean;
  readonly approve: ReadonlyArray<string>;
  readonly limits: Limits;
  readonly knowledge: boolean | ReadonlyArray<string>;
  readonly origin: "code" | "db";
  readonly active: boolean;
  readonly version: number;
  readonly updated_by: string;
  readonly updated_at: string;
};

export type DirectCall = {
  readonly arguments?: Record<string, unknown>;
  readonly key?: string | null;
  readonly timeout?: number | null;
};

export type Document = {
  readonly id: string;
  readonly owner: Owner;
  readonly collection: string;
  readonly name: string;
  readonly title: string | null;
  readonly source: string | null;
  readonly version: number;
  readonly status: "failed" | "pending" | "ready" | "running";
  readonly error: string | null;
  readonly hash: string | null;
  readonly media_type: string | null;
  readonly size: number;
  readonly pages: number | null;
  readonly chunks: number;
  readonly characters: number;
  readonly metadata: Record<string, unknown>;
  readonly created_at: string;
  readonly updated_at: string;
};

export type DocumentChange = {
  readonly metadata?: Record<string, unknown> | null;
  readonly title?: string | null;
  readonly collection?: string | null;
};

export type DocumentChunk = {
  readonly id: string;
  readonly index: number;
  readonly section: ReadonlyArray<string>;
  readonly page: number | null;
  readonly last_page: number | null;
  readonly start: number;
  readonly end: number;
  readonly tokens: number;
  readonly text: string;
};

export type DocumentOutline = {
  readonly sections: ReadonlyArray<Section>;
  readonly is_cut: boolean;
};

export type DocumentOwner = {
  readonly scope?: "agent" | "organization" | "user";
  readonly name?: string | null;
};

export type DocumentPage = {
  readonly documents: ReadonlyArray<Document>;
  readonly cursor: string | null;
};

export type Duplicate = {
  readonly keep: GraphEntity;
  readonly other: GraphEntity;
  readonly reason: "ending" | "initials" | "spaces" | "spelling";
};

export type DuplicateList = {
  readonly duplicates: ReadonlyArray<Duplicate>;
};

export type Ending = {
  readonly session_id: string;
};

export type EnginePart = {
  readonly name: string;
  readonly state: "down" | "ok" | "reduced";
  readonly detail?: string;
};

export type EntityHit = {
  readonly entity: GraphEntity;
  readonly score: number;
  readonly by: "meaning" | "name";
};

export type EntityView = {
  readonly entity: GraphEntity;
  readonly merges: ReadonlyArray<Merge>;
  readonly mentions: ReadonlyArray<Support>;
  readonly cursor: string | null;
};

export type ErasedEntries = {
  readonly erased: number;
};

export type ErasedKnowledge = {
  readonly documents: number;
  readonly chunks: number;
};

export type Erasure = {
  readonly owner: DocumentOwner;
};

export type ErasureRequest = {
  readonly user: string;
};

export type Event = {
  readonly kind: "action" | "answer" | "approval" | "decision" | "delete" | "done" | "error" | "message" | "observation" | "thinking" | "thought" | "token";
  readonly cursor: string;
  readonly at: string;
  readonly run_id?: string | null;
  readonly node_id?: string | null;
  readonly seq?: number | null;
  readonly version?: number;
  readonly author?: string | null;
  readonly text?: string;
  readonly tool?: string | null;
  readonly call_id?: string | null;
  readonly arguments?: unknown;
  readonly failed?: boolean;
  readonly reset?: boolean;
  readonly approval_id?: string | null;
  readonly reason?: string | null;
  readonly decision?: string | null;
  readonly state?: string | null;
  readonly error?: Record<string, unknown> | null;
  readonly usage?: Record<string, unknown> | null;
};

export type EventPage = {
  readonly events: ReadonlyArray<Event>;
  readonly cursor: string;
};

export type Execution = {
  readonly id: string;
  readonly tool: string;
  readonly tool_id: string | null;
  readonly arguments: unknown;
  readonly status: "cancelled" | "done" | "failed" | "running" | "unknown";
  readonly text: string;
  readonly result: unknown;
  readonly error: string | null;
  readonly latency_ms: number | null;
  readonly user: string | null;
  readonly agent: string | null;
  readonly run_id: string | null;
  readonly step: number | null;
  readonly key: string | null;
  readonly created_at: string;
  readonly finished_at: string | null;
  readonly has_output: boolean;
};

export type ExecutionDecision = {
  readonly decision: "again" | "done" | "failed";
  readonly comment?: string;
};

export type ExecutionPage = {
  readonly executions: ReadonlyArray<Execution>;
  readonly cursor: string | null;
};

export type ExplainedRule = {
  readonly name: string;
  readonly effect: "allow" | "deny";
  readonly on_trial: boolean;
  readonly matches: boolean | null;
  readonly decides: boolean;
  readonly unmet: string;
  readonly because: string;
  readonly text: string | null;
};

export type ExplainedStep = {
  readonly name: string;
  readonly passed: boolean | null;
  readonly what: string;
  readonly next?: string;
};

export type Explanation = {
  readonly tool: string;
  readonly verdict: "allowed" | "asks" | "depends" | "refused";
  readonly why: string;
  readonly next: string;
  readonly steps: ReadonlyArray<ExplainedStep>;
  readonly rules: ReadonlyArray<ExplainedRule>;
};

export type Fault = {
  readonly kind: "changed" | "inserted" | "missing" | "unsealed";
  readonly seq: number;
  readonly what: string;
  readonly id?: string | null;
};

export type FlaggedTool = {
  readonly name: string;
  readonly warnings: ReadonlyArray<ToolWarning>;
};

export type FollowedJobs = {
  readonly ids: ReadonlyArray<string>;
};

export type FoundEntities = {
  readonly entities: ReadonlyArray<EntityHit>;
};

export type FoundMemories = {
  readonly hits: ReadonlyArray<Hit>;
  readonly reduced: string;
  readonly omitted?: number;
};

export type FoundPage = {
  readonly found: ReadonlyArray<NodeHit>;
  readonly cursor: string | null;
};

export type FoundPassage = {
  readonly id: string;
  readonly document: string;
  readonly name: string;
  readonly citation: string;
  readonly text: string;
  readonly section: ReadonlyArray<string>;
  readonly page: number | null;
  readonly last_page: number | null;
  readonly start: number;
  readonly end: number;
  readonly chunk: number;
  readonly collection: string;
  readonly owner: Owner;
  readonly title: string | null;
  readonly source: string | null;
  readonly metadata: Record<string, unknown>;
  readonly score: number;
  readonly parts: ScoreParts | null;
};

export type FoundPassages = {
  readonly hits: ReadonlyArray<FoundPassage>;
  readonly reduced: string;
};

export type GraphEntity = {
  readonly id: string;
  readonly name: string;
  readonly type: string;
  readonly description: string | null;
  readonly aliases: ReadonlyArray<string>;
  readonly mentions: number;
  readonly owner: Owner;
};

export type GraphqlOperation = {
  readonly document: string;
  readonly name?: string;
  readonly type?: string;
  readonly selection?: string;
  readonly fields?: string;
  readonly deepest?: number;
  readonly items?: number;
};

export type GroupLag = {
  readonly partitions: ReadonlyArray<Lag>;
};

export type GroupPositions = {
  readonly positions: Record<string, number>;
};

export type GroupReset = {
  readonly topic: string;
  readonly partition?: number | null;
  readonly offset?: number | null;
  readonly at?: string | null;
  readonly end?: boolean;
};

export type HeadGiven = {
  readonly seq: number;
  readonly hash: string;
};

export type Health = {
  readonly service: string;
  readonly version: string;
  readonly instance: string;
  readonly state?: string;
};

export type HeldTool = {
  readonly name: string;
  readonly change: "changed" | "new";
  readonly what: ReadonlyArray<string>;
  readonly hash: string;
  readonly warnings: ReadonlyArray<ToolWarning>;
};

export type Hit = {
  readonly memory: Memory;
  readonly score: number;
  readonly parts?: ScoreParts | null;
  readonly citation?: string | null;
};

export type IdList = {
  readonly ids: ReadonlyArray<string>;
  readonly more: boolean;
};

export type IdentityCheck = {
  readonly kind: string;
  readonly claims?: Record<string, unknown>;
};

export type IdentityKey = {
  readonly kid: string;
  readonly algorithm: string;
  readonly signs: boolean;
  readonly usable: boolean;
  readonly active_from: string;
  readonly created_at: string;
  readonly created_by: string;
};

export type IdentityKeyList = {
  readonly keys: ReadonlyArray<IdentityKey>;
};

export type ImportDetails = {
  readonly imported: SourceImport;
  readonly tools: ReadonlyArray<ToolDifference>;
};

export type ImportReport = {
  readonly added?: number;
  readonly folded?: number;
  readonly expired?: number;
};

export type ImportedSkill = {
  readonly name: string;
  readonly change: "changed" | "created" | "unchanged";
  readonly version: number;
};

export type IngestJob = {
  readonly id: string;
  readonly document: string;
  readonly name: string;
  readonly collection: string;
  readonly state: "done" | "failed" | "pending" | "running" | "superseded";
  readonly error: string | null;
  readonly attempts: number;
  readonly units: number;
  readonly total_units: number | null;
  readonly chunks: number;
  readonly embedded: number;
  readonly size: number;
  readonly media_type: string | null;
  readonly created_at: string;
  readonly updated_at: string;
};

export type JobList = {
  readonly jobs: ReadonlyArray<IngestJob>;
};

export type JobPage = {
  readonly jobs: ReadonlyArray<IngestJob>;
  readonly cursor: string | null;
};

export type JsonWebKeys = {
  readonly keys: ReadonlyArray<Record<string, unknown>>;
};

export type Key = {
  readonly id: string;
  readonly kind: "key" | "link" | "session";
  readonly tenant: string;
  readonly principal: string;
  readonly agent: string | null;
  readonly label: string;
  readonly scopes: ReadonlyArray<string>;
  readonly created_at: string;
  readonly expires_at: string | null;
  readonly revoked_at: string | null;
};

export type KeyList = {
  readonly keys: ReadonlyArray<Key>;
};

export type KeyRequest = {
  readonly principal: string;
  readonly scopes?: ReadonlyArray<"act-as" | "admin" | "operator" | "read" | "write"> | null;
  readonly agent?: string | null;
  readonly label?: string;
  readonly lifetime_seconds?: number | null;
};

export type KeyRotation = {
  readonly now?: boolean;
};

export type KnowledgeQuery = {
  readonly query: string;
  readonly limit?: number;
  readonly owners?: ReadonlyArray<DocumentOwner> | null;
  readonly collections?: ReadonlyArray<string> | null;
  readonly documents?: ReadonlyArray<string> | null;
  readonly where?: Record<string, unknown> | null;
  readonly explain?: boolean;
};

export type KnownSecret = {
  readonly name: string;
  readonly hosts: ReadonlyArray<string>;
  readonly usable: boolean;
  readonly version: number;
  readonly created_at: string;
  readonly updated_at: string;
  readonly updated_by: string;
};

export type Lag = {
  readonly group: string;
  readonly topic: string;
  readonly partition: number;
  readonly position: number;
  readonly end: number;
  readonly lag: number;
  readonly oldest: string | null;
  readonly owner: string | null;
  readonly attempts: number;
  readonly error: string | null;
};

export type LimitList = {
  readonly limits: ReadonlyArray<StoredLimit>;
};

export type LimitRequest = {
  readonly rule: string;
  readonly as_operator?: boolean;
};

export type LimitUsage = {
  readonly limit: string;
  readonly subject: string;
  readonly measure: string;
  readonly used: number;
  readonly amount: number;
  readonly reserved?: number;
  readonly warned?: boolean;
  readonly resets_at?: string | null;
};

export type LimitUsageList = {
  readonly usage: ReadonlyArray<LimitUsage>;
};

export type Limits = {
  readonly steps?: number | null;
  readonly tokens?: number | null;
  readonly seconds?: number | null;
  readonly cost?: number | null;
};

export type LinkRequest = {
  readonly principal?: string | null;
  readonly scopes?: ReadonlyArray<"act-as" | "admin" | "operator" | "read" | "write"> | null;
};

export type Login = {
  readonly link: string;
  readonly to?: string;
};

export type MadeTopic = {
  readonly name: string;
  readonly partitions: number;
};

export type McpServer = {
  readonly url?: string;
  readonly command?: ReadonlyArray<string>;
  readonly env?: Record<string, string>;
  readonly prefix?: string | null;
  readonly sampling?: boolean;
  readonly shared?: boolean;
};

export type McpSettings = {
  readonly command?: ReadonlyArray<string>;
  readonly env?: Record<string, string>;
  readonly prefix?: string | null;
  readonly sampling?: boolean;
  readonly shared?: boolean;
};

export type McpTool = {
  readonly name: string;
  readonly definition?: Record<string, unknown>;
};

export type Me = {
  readonly tenant: string;
  readonly user: string;
  readonly scopes: ReadonlyArray<string>;
  readonly local: boolean;
};

export type Memory = {
  readonly id: string;
  readonly owner: Owner;
  readonly content: string;
  readonly type: string;
  readonly importance: number;
  readonly trust: "agent" | "system" | "tool" | "untrusted" | "user";
  readonly metadata: Record<string, unknown>;
  readonly source: string | null;
  readonly key: string | null;
  readonly conversation: string | null;
  readonly seq: number | null;
  readonly author: string | null;
  readonly at: string | null;
  readonly created_at: string;
  readonly valid_from: string;
  readonly valid_to: string | null;
  readonly expires_at: string | null;
  readonly superseded_by: string | null;
  readonly pinned: boolean;
  readonly buried: boolean;
  readonly embedded: boolean;
  readonly access_count: number;
  readonly last_accessed: string;
  readonly version: number;
  readonly document?: string | null;
};

export type MemoryDraft = {
  readonly content: string;
  readonly type?: string | null;
  readonly importance?: number;
  readonly ttl?: number | null;
  readonly trust?: "agent" | "system" | "tool" | "untrusted" | "user";
  readonly metadata?: Record<string, unknown>;
  readonly source?: string | null;
  readonly key?: string | null;
  readonly conversation?: string | null;
  readonly seq?: number | null;
  readonly author?: string | null;
  readonly at?: string | null;
};

export type MemoryEdit = {
  readonly content?: string | null;
  readonly type?: string | null;
  readonly importance?: number | null;
  readonly ttl?: number | null;
  readonly trust?: "agent" | "system" | "tool" | "untrusted" | "user" | null;
  readonly metadata?: Record<string, unknown> | null;
  readonly version?: number | null;
};

export type MemoryHistory = {
  readonly revisions: ReadonlyArray<MemoryRevision>;
  readonly cursor: number | null;
};

export type MemoryList = {
  readonly memories: ReadonlyArray<Memory>;
};

export type MemoryOwners = {
  readonly owners: ReadonlyArray<OwnerCount>;
  readonly cursor: string | null;
};

export type MemoryPage = {
  readonly memories: ReadonlyArray<Memory>;
  readonly cursor: string | null;
};

export type MemoryRevision = {
  readonly version: number;
  readonly operation: string;
  readonly at: string;
  readonly content: string;
  readonly type: string;
  readonly importance: number;
  readonly trust: "agent" | "system" | "tool" | "untrusted" | "user";
  readonly metadata: Record<string, unknown>;
};

export type Merge = {
  readonly id: string;
  readonly keep: string;
  readonly keep_name: string;
  readonly other: string;
  readonly other_name: string;
  readonly memory: string | null;
  readonly at: string;
};

export type MergeMade = {
  readonly id: string;
  readonly entity: GraphEntity;
};

export type Messages = {
  readonly messages: ReadonlyArray<ModelMessage>;
};

export type ModelMessage = {
  readonly content: string;
  readonly name?: string;
  readonly role: "assistant" | "system" | "tool" | "user";
  readonly tool_call_id?: string;
  readonly tool_calls?: ReadonlyArray<StoredToolCall>;
};

export type ModelReply = {
  readonly text: string;
  readonly calls: ReadonlyArray<ToolCall>;
  readonly usage: TokenUsage;
  readonly reason: "end" | "length" | "refused" | "tools";
  readonly model: string;
  readonly thinking?: string;
  readonly cost?: number;
};

export type ModelUsageList = {
  readonly usage: ReadonlyArray<DailyUsage>;
};

export type Neighbour = {
  readonly entity: GraphEntity;
  readonly relation: string | null;
  readonly outgoing: boolean;
  readonly count: number;
  readonly memories: ReadonlyArray<string>;
};

export type NeighbourList = {
  readonly neighbours: ReadonlyArray<Neighbour>;
};

export type NewCommand = {
  readonly skill: string;
  readonly arguments?: Record<string, unknown>;
  readonly correlation_id?: string | null;
  readonly reply_to?: string;
  readonly priority?: number;
  readonly max_attempts?: number | null;
  readonly headers?: Record<string, string>;
  readonly wait?: number;
};

export type NewConversation = {
  readonly app?: string;
  readonly agent?: string | null;
  readonly session_id?: string | null;
  readonly user?: string | null;
  readonly state?: Record<string, unknown>;
  readonly document?: boolean;
};

export type NewKey = {
  readonly key: Key;
  readonly text: string;
};

export type NewMemories = {
  readonly memories: ReadonlyArray<MemoryDraft>;
  readonly owner?: OwnerName;
};

export type NewMerge = {
  readonly keep: string;
  readonly other: string;
};

export type NewNode = {
  readonly content: string;
  readonly context?: string | null;
  readonly payload?: Record<string, unknown> | null;
  readonly key?: string | null;
  readonly expect?: number | null;
  readonly state?: Record<string, unknown>;
  readonly delete_state?: ReadonlyArray<string>;
  readonly parent?: string | null;
  readonly turn?: number | null;
};

export type NewNodes = {
  readonly nodes: ReadonlyArray<NodeDraft>;
  readonly expect?: number | null;
  readonly state?: Record<string, unknown>;
  readonly delete_state?: ReadonlyArray<string>;
  readonly turn?: number | null;
};

export type NewRecord = {
  readonly value: unknown;
  readonly key?: string | null;
  readonly headers?: Record<string, string>;
  readonly id?: string | null;
};

export type NewSource = {
  readonly name: string;
  readonly kind?: "graphql" | "jsonrpc" | "mcp" | "openapi" | null;
  readonly document?: string | null;
  readonly url?: string | null;
  readonly choice?: Chosen;
  readonly base_url?: string | null;
  readonly auth?: Record<string, string>;
  readonly headers?: Record<string, string>;
  readonly timeout?: number | null;
  readonly mcp?: McpSettings | null;
  readonly reload_seconds?: 0 | unknown | null;
  readonly selection?: Selection;
  readonly pin?: "follow" | "hold";
  readonly identity?: SourceIdentity | null;
};

export type NewTenant = {
  readonly name: string;
};

export type NewText = {
  readonly text: string;
  readonly name: string;
  readonly collection?: string;
  readonly owner?: DocumentOwner;
  readonly title?: string | null;
  readonly source?: string | null;
  readonly metadata?: Record<string, unknown> | null;
  readonly media_type?: string | null;
  readonly wait?: boolean;
};

export type NewTopic = {
  readonly name: string;
  readonly partitions?: number | null;
};

export type Node = {
  readonly id: string;
  readonly root: string;
  readonly parent: string | null;
  readonly seq: number;
  readonly context: string;
  readonly content: string;
  readonly payload: Record<string, unknown> | null;
  readonly state: Record<string, ReadonlyArray<unknown>> | null;
  readonly key: string | null;
  readonly version: number;
  readonly revision: number;
  readonly deleted: boolean;
  readonly created_at: string;
  readonly updated_at: string;
  readonly form?: string | null;
  readonly native?: string | null;
};

export type NodeDraft = {
  readonly content: string;
  readonly context?: string | null;
  readonly payload?: Record<string, unknown> | null;
  readonly key?: string | null;
};

export type NodeEdit = {
  readonly content: string;
  readonly version: number;
  readonly payload?: Record<string, unknown> | null;
};

export type NodeHit = {
  readonly conversation: Conversation;
  readonly node: Node;
};

export type NodeMove = {
  readonly version: number;
  readonly parent: string;
  readonly before?: string | null;
};

export type NodePage = {
  readonly nodes: ReadonlyArray<Node>;
  readonly cursor: number | null;
};

export type NodeRevision = {
  readonly node_id: string;
  readonly version: number;
  readonly parent: string | null;
  readonly context: string;
  readonly content: string;
  readonly payload: Record<string, unknown> | null;
  readonly form: string | null;
  readonly native: string | null;
  readonly deleted: boolean;
  readonly revision: number;
  readonly updated_at: string;
};

export type NodeRevisions = {
  readonly revisions: ReadonlyArray<NodeRevision>;
  readonly cursor: number | null;
};

export type Nodes = {
  readonly nodes: ReadonlyArray<Node>;
};

export type Note = {
  readonly user: string;
  readonly agent: string;
  readonly notes: string;
  readonly version: number;
  readonly updated_at: string | null;
};

export type NoteEdit = {
  readonly operation: "append" | "delete_all_notes" | "delete_section_by_header" | "overwrite" | "prepend" | "read" | "replace_section_by_header";
  readonly content?: string | null;
  readonly section_header?: string | null;
  readonly version?: number | null;
};

export type NoteRestore = {
  readonly revision: number;
  readonly version?: number | null;
};

export type NoteRevision = {
  readonly version: number;
  readonly operation: string;
  readonly notes: string;
  readonly created_at: string;
};

export type NoteRevisions = {
  readonly revisions: ReadonlyArray<NoteRevision>;
};

export type Owner = {
  readonly scope: "agent" | "organization" | "session" | "user";
  readonly name?: string;
  readonly agent?: string | null;
  readonly user?: string | null;
  readonly conversation?: string | null;
};

export type OwnerCount = {
  readonly scope: "agent" | "organization" | "session" | "user";
  readonly name: string | null;
  readonly agent: string | null;
  readonly user: string | null;
  readonly count: number;
  readonly newest: string;
};

export type OwnerName = {
  readonly scope?: "agent" | "organization" | "session" | "user";
  readonly name?: string | null;
  readonly agent?: string | null;
};

export type Path = {
  readonly hops: ReadonlyArray<PathHop>;
};

export type PathHop = {
  readonly source: GraphEntity;
  readonly target: GraphEntity;
  readonly label: string;
  readonly relations: ReadonlyArray<Relationship>;
  readonly supports: ReadonlyArray<Support>;
};

export type PathList = {
  readonly paths: ReadonlyArray<Path>;
  readonly cut: boolean;
};

export type Pinning = {
  readonly pinned?: boolean;
};

export type Problem = {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly code: string;
  readonly instance: string;
  readonly request_id: string;
  readonly what: string;
  readonly why?: string;
  readonly next?: string;
  readonly details?: Record<string, unknown>;
};

export type ProgressGiven = {
  readonly seq: number;
  readonly hash: string;
  readonly checkpoint?: string;
  readonly verified?: number;
  readonly erased?: number;
  readonly erasures?: number;
  readonly unexplained?: number;
  readonly attested?: boolean;
};

export type Proposal = {
  readonly tool: string;
  readonly source: string;
  readonly change: "changed" | "new";
  readonly state: "approved" | "open" | "rejected" | "withdrawn";
  readonly hash: string;
  readonly pinned: string | null;
  readonly what: ReadonlyArray<string>;
  readonly diff: string;
  readonly warnings: ReadonlyArray<ToolWarning>;
  readonly found_at: string;
  readonly found_by: string;
  readonly decided_at: string | null;
  readonly decided_by: string | null;
};

export type ProposalDecision = {
  readonly decision: "approve" | "reject";
  readonly tools: Record<string, string>;
};

export type ProposalList = {
  readonly proposals: ReadonlyArray<Proposal>;
};

export type ProtectedResource = {
  readonly resource: string;
  readonly authorization_servers: ReadonlyArray<string>;
  readonly bearer_methods_supported: ReadonlyArray<string>;
  readonly resource_name: string;
  readonly scopes_supported?: ReadonlyArray<string>;
};

export type PublishedRecord = {
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
  readonly at: string;
  readonly id: string;
  readonly key: string | null;
  readonly headers: Record<string, string>;
  readonly value: unknown;
};

export type Readiness = {
  readonly state: "down" | "ok" | "reduced";
  readonly parts: ReadonlyArray<EnginePart>;
};

export type Reading = {
  readonly document: string;
  readonly name: string;
  readonly version: number;
  readonly text: string;
  readonly start: number;
  readonly end: number;
  readonly first_page: number | null;
  readonly last_page: number | null;
  readonly section: ReadonlyArray<string>;
  readonly next: number | null;
};

export type RecordPage = {
  readonly records: ReadonlyArray<PublishedRecord>;
  readonly next: Record<string, number>;
};

export type RecordedEntry = {
  readonly seq: number;
  readonly id: string;
  readonly at: string;
  readonly action: string;
  readonly target: string;
  readonly outcome: "cancelled" | "done" | "failed" | "refused" | "unknown" | "waiting";
  readonly user?: string | null;
  readonly actor?: string | null;
  readonly agent?: string | null;
  readonly key?: string | null;
  readonly via?: "agent" | "engine" | "http" | "mcp" | "rpc" | "stdio" | "websocket";
  readonly address?: string;
  readonly arguments?: unknown;
  readonly arguments_hash?: string;
  readonly details?: Record<string, unknown>;
  readonly code?: string;
  readonly rule?: string;
  readonly notes?: ReadonlyArray<string>;
  readonly count?: number | null;
  readonly duration_ms?: number | null;
  readonly bytes_in?: number | null;
  readonly bytes_out?: number | null;
  readonly request_id?: string;
  readonly trace_id?: string;
  readonly erased?: boolean;
};

export type Redrive = {
  readonly group?: string | null;
  readonly topic?: string | null;
};

export type Redriven = {
  readonly redriven: number;
};

export type RegistryHistory = {
  readonly changes: ReadonlyArray<ChangeRecord>;
  readonly cursor: string | null;
};

export type Relationship = {
  readonly type: string;
  readonly forward: boolean;
  readonly description: string | null;
};

export type Reloading = {
  readonly document?: string | null;
  readonly url?: string | null;
  readonly version?: number | null;
  readonly accept_address?: boolean;
  readonly dry_run?: boolean;
};

export type Removal = {
  readonly source: string;
  readonly revoked: boolean;
};

export type RemovedSource = {
  readonly tools: ReadonlyArray<string>;
};

export type RequestBody = {
  readonly content_type: string;
  readonly argument?: string | null;
  readonly fields?: ReadonlyArray<BodyField>;
};

export type RequestParameter = {
  readonly argument: string;
  readonly name: string;
  readonly location: "cookie" | "header" | "path" | "query";
  readonly style?: "deepObject" | "form" | "label" | "matrix" | "pipeDelimited" | "simple" | "spaceDelimited" | "tabDelimited";
  readonly explode?: boolean;
  readonly allow_reserved?: boolean;
  readonly content_type?: string | null;
};

export type RequestTemplate = {
  readonly method: string;
  readonly url: string;
  readonly parameters?: ReadonlyArray<RequestParameter>;
  readonly body?: RequestBody | null;
  readonly security?: ReadonlyArray<ReadonlyArray<AuthScheme>>;
  readonly headers?: Record<string, string>;
  readonly accept?: string;
  readonly rpc?: RpcMethod | null;
  readonly graphql?: GraphqlOperation | null;
  readonly mcp?: McpTool | null;
};

export type RequestedApproval = {
  readonly step: number;
  readonly call_id: string;
  readonly reason: "listed" | "unknown";
  readonly state: "approved" | "denied" | "pending" | "withdrawn";
  readonly comment: string | null;
  readonly used?: boolean;
  readonly id?: string;
};

export type ResearchDetail = {
  readonly research: ResearchRun;
  readonly text: string | null;
};

export type ResearchEvent = {
  readonly seq: number;
  readonly kind: string;
  readonly data: Record<string, unknown>;
  readonly at: string;
};

export type ResearchEvents = {
  readonly events: ReadonlyArray<ResearchEvent>;
  readonly has_ended: boolean;
};

export type ResearchOwner = {
  readonly scope: "agent" | "organization" | "session" | "user";
  readonly name?: string;
};

export type ResearchPage = {
  readonly research: ReadonlyArray<ResearchRun>;
  readonly cursor: string | null;
};

export type ResearchReport = {
  readonly question: string;
  readonly statements: ReadonlyArray<CitedStatement>;
  readonly complete?: boolean;
  readonly missing?: ReadonlyArray<string>;
  readonly dropped?: number;
  readonly dropped_notes?: number;
  readonly passages?: number;
  readonly all_passages?: number;
  readonly by?: string;
  readonly calls?: number;
  readonly tokens?: number;
  readonly cost?: number;
};

export type ResearchRun = {
  readonly id: string;
  readonly user: string | null;
  readonly agent: string | null;
  readonly question: string;
  readonly target: ResearchTarget;
  readonly model: string;
  readonly budget: Budget;
  readonly calls: number;
  readonly tokens: number;
  readonly cost: number;
  readonly state: "cancelled" | "done" | "failed" | "queued" | "running";
  readonly events: number;
  readonly report: ResearchReport | null;
  readonly error: Record<string, unknown> | null;
  readonly created_at: string;
  readonly started_at: string | null;
  readonly finished_at: string | null;
};

export type ResearchTarget = {
  readonly owners: ReadonlyArray<ResearchOwner>;
  readonly collections?: ReadonlyArray<string> | null;
  readonly documents?: ReadonlyArray<string> | null;
  readonly whole?: boolean;
};

export type ResumeResearch = {
  readonly calls?: number | null;
  readonly tokens?: number | null;
  readonly wait?: boolean;
};

export type RpcMethod = {
  readonly name: string;
  readonly positions?: ReadonlyArray<string>;
};

export type RuleSummary = {
  readonly name: string;
  readonly effect: "allow" | "deny";
  readonly on_trial: boolean;
  readonly text: string;
  readonly because: string;
  readonly line: number;
  readonly trial: RuleTrial | null;
};

export type RuleTrial = {
  readonly rule: string;
  readonly calls: number;
  readonly last_at: string;
  readonly examples: ReadonlyArray<TrialCall>;
};

export type RulesAddition = {
  readonly rules: string;
};

export type RulesChange = {
  readonly text: string;
  readonly version?: number | null;
};

export type RulesDetail = {
  readonly text: string;
  readonly version: number;
  readonly updated_at: string | null;
  readonly updated_by: string;
  readonly default: "allow" | "deny";
  readonly default_on_trial: boolean;
  readonly default_trial: RuleTrial | null;
  readonly rules: ReadonlyArray<RuleSummary>;
  readonly warnings: ReadonlyArray<string>;
};

export type RulesTest = {
  readonly calls: number;
  readonly changed: ReadonlyArray<ChangedDecision>;
  readonly rules: number;
  readonly warnings: ReadonlyArray<string>;
};

export type RulesTrial = {
  readonly text: string;
  readonly calls?: number;
};

export type RunExecution = {
  readonly id: string;
  readonly step: number;
  readonly call_id: string;
  readonly tool: string;
  readonly arguments: unknown;
  readonly status: "done" | "failed" | "running" | "unknown";
  readonly token: number;
  readonly output: unknown;
  readonly error: string | null;
  readonly latency_ms?: number | null;
  readonly tool_id?: string | null;
  readonly correlation_id?: string | null;
};

export type RunPage = {
  readonly runs: ReadonlyArray<AgentRun>;
  readonly cursor: string | null;
  readonly questions: Record<string, string>;
};

export type RunStep = {
  readonly number: number;
  readonly sent: Record<string, unknown>;
  readonly reply: ModelReply | null;
  readonly started_at: string;
  readonly replied_at: string | null;
};

export type RunStory = {
  readonly run: AgentRun;
  readonly steps: ReadonlyArray<RunStep>;
  readonly executions: ReadonlyArray<RunExecution>;
  readonly asked: ReadonlyArray<RequestedApproval>;
  readonly cursor: number | null;
};

export type SandboxExecution = {
  readonly id: string;
  readonly execution_id: string | null;
  readonly run_id: string | null;
  readonly sandbox_type: string;
  readonly code: string;
  readonly environment: Record<string, unknown>;
  readonly stdout: string;
  readonly stderr: string;
  readonly exit_code: number;
  readonly reason: string | null;
  readonly execution_time_ms: number;
  readonly resource_usage: Record<string, unknown>;
  readonly created_at: string;
};

export type SandboxExecutionList = {
  readonly sandbox_executions: ReadonlyArray<SandboxExecution>;
};

export type ScoreParts = {
  readonly vector: number;
  readonly words: number;
  readonly neighbours: number;
  readonly conversation: number;
  readonly author: number;
  readonly date: number;
  readonly recency: number;
  readonly importance: number;
  readonly trust: number;
  readonly graph?: number;
};

export type Search = {
  readonly query: string;
  readonly owner?: OwnerName;
  readonly limit?: number | null;
  readonly where?: Record<string, unknown> | null;
  readonly types?: ReadonlyArray<string> | null;
  readonly since?: string | null;
  readonly until?: string | null;
  readonly as_of?: string | null;
  readonly min_importance?: number | null;
  readonly collections?: ReadonlyArray<string> | null;
  readonly explain?: boolean;
};

export type SecretList = {
  readonly secrets: ReadonlyArray<KnownSecret>;
};

export type SecretValue = {
  readonly value: string;
  readonly hosts?: ReadonlyArray<string>;
};

export type Section = {
  readonly path: ReadonlyArray<string>;
  readonly level: number;
  readonly page: number | null;
  readonly start: number;
  readonly end: number;
};

export type Selection = {
  readonly depth?: number;
  readonly fields?: number;
  readonly characters?: number;
  readonly items?: number;
  readonly deepest?: number;
  readonly operations?: Record<string, string>;
};

export type SelectionRules = {
  readonly depth?: number;
  readonly fields?: number;
  readonly characters?: number;
  readonly items?: number;
  readonly deepest?: number;
  readonly operations?: Record<string, string>;
};

export type Service = {
  readonly method: string;
  readonly tool: string;
  readonly description: string;
  readonly schema: Record<string, unknown>;
};

export type ServiceList = {
  readonly services: ReadonlyArray<Service>;
};

export type SignInLink = {
  readonly url: string;
  readonly path: string;
  readonly lifetime_seconds: number;
};

export type SkillChange = {
  readonly instructions: string;
  readonly description?: string;
  readonly label?: string;
  readonly parent?: string | null;
  readonly front_matter?: Record<string, unknown> | null;
  readonly files?: Record<string, SkillContent> | null;
  readonly active?: boolean;
  readonly version?: number | null;
};

export type SkillContent = {
  readonly content: string;
  readonly executable?: boolean;
};

export type SkillDependency = {
  readonly skill: string;
  readonly on: string;
  readonly required: boolean;
  readonly active: boolean;
  readonly version: number;
  readonly updated_at: string;
  readonly updated_by: string;
};

export type SkillDetail = {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly instructions: string;
  readonly label: string;
  readonly parent: string | null;
  readonly front_matter: Record<string, unknown>;
  readonly origin: "code" | "db";
  readonly active: boolean;
  readonly version: number;
  readonly created_at: string;
  readonly updated_at: string;
  readonly updated_by: string;
  readonly files: ReadonlyArray<SkillFile>;
  readonly tools: ReadonlyArray<ToolLink>;
  readonly needs: ReadonlyArray<SkillDependency>;
  readonly agents: ReadonlyArray<Assignment>;
};

export type SkillFile = {
  readonly path: string;
  readonly bytes: number;
  readonly executable: boolean;
};

export type SkillFolder = {
  readonly files: Record<string, SkillContent>;
  readonly replace?: boolean;
};

export type SkillNeed = {
  readonly required?: boolean;
  readonly active?: boolean;
  readonly version?: number | null;
};

export type SkillPage = {
  readonly skills: ReadonlyArray<SkillSummary>;
  readonly cursor?: string | null;
  readonly reduced?: string;
};

export type SkillSummary = {
  readonly name: string;
  readonly description: string;
  readonly active: boolean;
  readonly score?: number | null;
  readonly label?: string | null;
  readonly parent?: string | null;
};

export type SkillTool = {
  readonly access?: "execute" | "read" | "write" | null;
  readonly config?: {
  readonly arguments?: Record<string, unknown>;
  readonly defaults?: Record<string, unknown>;
  readonly timeout?: number;
  readonly approve?: boolean;
};
  readonly active?: boolean;
  readonly version?: number | null;
};

export type Skipped = {
  readonly operation: string;
  readonly path: string;
  readonly reason: string;
  readonly chosen?: boolean;
};

export type SourceChange = {
  readonly version: number;
  readonly choice?: Chosen | null;
  readonly base_url?: string | null;
  readonly auth?: Record<string, string> | null;
  readonly headers?: Record<string, string> | null;
  readonly timeout?: number | null;
  readonly mcp?: McpSettings | null;
  readonly reload_seconds?: 0 | unknown | null;
  readonly selection?: Selection | null;
  readonly pin?: "follow" | "hold" | null;
  readonly identity?: SourceIdentity | null;
  readonly document?: string | null;
  readonly url?: string | null;
  readonly accept_address?: boolean;
};

export type SourceDetails = {
  readonly source: SourceEntry;
  readonly tools: ReadonlyArray<SourceTool>;
  readonly skipped: ReadonlyArray<Skipped>;
  readonly missing_auth: ReadonlyArray<string>;
};

export type SourceEntry = {
  readonly id: string;
  readonly name: string;
  readonly kind: "graphql" | "jsonrpc" | "mcp" | "openapi";
  readonly location: string;
  readonly title: string;
  readonly label: string;
  readonly choice: Choice;
  readonly backend: Backend;
  readonly selection: SelectionRules;
  readonly pin: "follow" | "hold";
  readonly tools: number;
  readonly held: number;
  readonly skipped: number;
  readonly missing_secrets: ReadonlyArray<string>;
  readonly active: boolean;
  readonly version: number;
  readonly reload_seconds: number | null;
  readonly checked_at: string | null;
  readonly error: string;
  readonly imported_at: string | null;
  readonly created_at: string;
  readonly updated_at: string;
  readonly updated_by: string;
};

export type SourceIdentity = {
  readonly kind: "client_credentials" | "pass_through" | "signed" | "token_exchange" | "user";
  readonly audience?: string;
  readonly resource?: string;
  readonly scopes?: ReadonlyArray<string>;
  readonly issuer?: string;
  readonly token_url?: string;
  readonly authorize_url?: string;
  readonly client_id?: string;
  readonly client_secret?: string;
  readonly client_auth?: "basic" | "post";
  readonly actor?: boolean;
  readonly requested?: "access_token" | "jwt";
  readonly fallback?: "client_credentials" | "signed" | null;
};

export type SourceImport = {
  readonly revision: number;
  readonly label: string;
  readonly added: number;
  readonly changed: number;
  readonly removed: number;
  readonly deactivated: number;
  readonly held: number;
  readonly by: string;
  readonly at: string;
};

export type SourceImportList = {
  readonly imports: ReadonlyArray<SourceImport>;
};

export type SourceList = {
  readonly sources: ReadonlyArray<SourceEntry>;
};

export type SourceReport = {
  readonly source: SourceEntry;
  readonly added: ReadonlyArray<string>;
  readonly changed: ReadonlyArray<ChangedTool>;
  readonly removed: ReadonlyArray<string>;
  readonly deactivated: ReadonlyArray<string>;
  readonly unchanged: ReadonlyArray<string>;
  readonly held: ReadonlyArray<HeldTool>;
  readonly flagged: ReadonlyArray<FlaggedTool>;
  readonly skipped: ReadonlyArray<Skipped>;
  readonly missing_auth: ReadonlyArray<string>;
  readonly written: boolean;
  readonly dry_run: boolean;
};

export type SourceTool = {
  readonly name: string;
  readonly operation: string;
  readonly access: "execute" | "read" | "write";
  readonly active: boolean;
  readonly gone: boolean;
  readonly notes: ReadonlyArray<string>;
  readonly held?: "altered" | "proposal" | null;
  readonly hash?: string | null;
  readonly warnings?: ReadonlyArray<ToolWarning>;
};

export type StartResearch = {
  readonly question: string;
  readonly documents?: ReadonlyArray<string> | null;
  readonly collections?: ReadonlyArray<string> | null;
  readonly calls?: number | null;
  readonly tokens?: number | null;
  readonly cost?: number | null;
  readonly whole?: boolean;
  readonly wait?: boolean;
};

export type StateChange = {
  readonly state?: Record<string, unknown>;
  readonly delete?: ReadonlyArray<string>;
  readonly expect?: Record<string, number>;
};

export type StateChanged = {
  readonly seq: number;
  readonly revision: number;
  readonly at: string;
  readonly set: Record<string, unknown>;
  readonly deleted: ReadonlyArray<string>;
};

export type StateChanges = {
  readonly changes: ReadonlyArray<StateChanged>;
  readonly next: number | null;
};

export type StateEntries = {
  readonly state: Record<string, StateValue>;
};

export type StateValue = {
  readonly value: unknown;
  readonly version: number;
};

export type StoredLimit = {
  readonly id: string;
  readonly name: string;
  readonly rule: string;
  readonly origin: string;
  readonly scopes: ReadonlyArray<string>;
  readonly measure: string;
  readonly amount: number;
  readonly window: string | null;
  readonly burst: number | null;
  readonly warn: number | null;
  readonly updated_by?: string | null;
  readonly updated_at?: string | null;
};

export type StoredToolCall = {
  readonly arguments: Record<string, unknown>;
  readonly id: string;
  readonly name: string;
};

export type Subtree = {
  readonly nodes: ReadonlyArray<Node>;
  readonly cursor: string | null;
};

export type Successor = {
  readonly content: string;
  readonly at?: string | null;
  readonly version?: number | null;
};

export type Support = {
  readonly id: string;
  readonly text: string;
  readonly created_at: string;
  readonly document?: string | null;
  readonly name?: string | null;
  readonly title?: string | null;
  readonly chunk?: number | null;
  readonly section?: ReadonlyArray<string>;
  readonly page?: number | null;
  readonly last_page?: number | null;
  readonly start?: number | null;
  readonly end?: number | null;
  readonly citation?: string | null;
};

export type SweepReport = {
  readonly dry_run: boolean;
  readonly total: number;
  readonly counts: ReadonlyArray<SweptCount>;
  readonly ids: ReadonlyArray<string>;
};

export type SweepRequest = {
  readonly dry_run?: boolean;
};

export type SweptCount = {
  readonly scope: "agent" | "organization" | "session" | "user";
  readonly reason: "expired" | "faded";
  readonly memories: number;
};

export type Tenant = {
  readonly id: string;
  readonly name: string;
  readonly created_at: string;
};

export type TenantList = {
  readonly tenants: ReadonlyArray<Tenant>;
};

export type TokenUsage = {
  readonly type: "usage";
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly cached_tokens?: number;
  readonly estimated?: boolean;
};

export type ToolCall = {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
};

export type ToolChange = {
  readonly description: string;
  readonly parameters: Record<string, unknown>;
  readonly kind: "bash" | "function" | "graphql" | "java" | "javascript" | "jsonrpc" | "mcp_server" | "python" | "rest";
  readonly access?: "execute" | "read" | "write";
  readonly mode?: "event" | "inline" | null;
  readonly idempotent?: boolean;
  readonly approve?: boolean;
  readonly timeout?: number | null;
  readonly endpoint?: string | null;
  readonly method?: "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE" | "OPTIONS" | "TRACE" | "QUERY" | null;
  readonly request?: RequestTemplate | null;
  readonly reference?: string;
  readonly script?: string | null;
  readonly server?: string | null;
  readonly label?: string;
  readonly display_name?: string;
  readonly app_name?: string;
  readonly permissions?: {
  readonly default?: "none" | "read" | "write" | "execute";
  readonly agents?: Record<string, "none" | "read" | "write" | "execute">;
  readonly users?: "none" | "read" | "write" | "execute";
} | null;
  readonly service?: string | null;
  readonly active?: boolean;
  readonly version?: number | null;
};

export type ToolDetail = {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly parameters: Record<string, unknown>;
  readonly kind: "bash" | "function" | "graphql" | "java" | "javascript" | "jsonrpc" | "mcp_server" | "python" | "rest";
  readonly access: "execute" | "read" | "write";
  readonly mode: "event" | "inline" | null;
  readonly idempotent: boolean;
  readonly approve: boolean;
  readonly timeout: number | null;
  readonly label: string;
  readonly app_name: string;
  readonly display_name: string;
  readonly origin: "code" | "db" | "source";
  readonly source: string | null;
  readonly operation: string | null;
  readonly service: string | null;
  readonly active: boolean;
  readonly version: number;
  readonly calls: number;
  readonly failures: number;
  readonly latency_ms: number | null;
  readonly created_at: string;
  readonly updated_at: string;
  readonly updated_by: string;
  readonly reference: string | null;
  readonly request: RequestTemplate | null;
  readonly permissions: Record<string, unknown> | null;
  readonly held: "altered" | "proposal" | null;
  readonly hash: string | null;
  readonly warnings: ReadonlyArray<ToolWarning>;
};

export type ToolDifference = {
  readonly name: string;
  readonly change: "added" | "changed" | "deactivated" | "held" | "removed";
  readonly what: ReadonlyArray<string>;
  readonly before: Record<string, unknown> | null;
  readonly after: Record<string, unknown> | null;
};

export type ToolLink = {
  readonly skill: string;
  readonly tool: string;
  readonly access: "execute" | "read" | "write";
  readonly config: Record<string, unknown>;
  readonly active: boolean;
  readonly version: number;
  readonly updated_at: string;
  readonly updated_by: string;
};

export type ToolPage = {
  readonly tools: ReadonlyArray<ToolSummary>;
  readonly cursor?: string | null;
  readonly reduced?: string;
};

export type ToolPermissions = {
  readonly permissions: {
  readonly default?: "none" | "read" | "write" | "execute";
  readonly agents?: Record<string, "none" | "read" | "write" | "execute">;
  readonly users?: "none" | "read" | "write" | "execute";
};
  readonly version?: number | null;
};

export type ToolSummary = {
  readonly name: string;
  readonly description: string;
  readonly kind: "bash" | "function" | "graphql" | "java" | "javascript" | "jsonrpc" | "mcp_server" | "python" | "rest";
  readonly access: "execute" | "read" | "write";
  readonly source: string | null;
  readonly active: boolean;
  readonly calls?: number | null;
  readonly score?: number | null;
  readonly skill?: string | null;
};

export type ToolWarning = {
  readonly code: "hidden_characters" | "hidden_text" | "instructions" | "lookalike" | "other_tools" | "private_data" | "secrecy" | "side_channel";
  readonly where: string;
  readonly what: string;
};

export type Topic = {
  readonly name: string;
  readonly partitions: number;
  readonly records: number;
  readonly per_second: number;
  readonly oldest: string | null;
  readonly created_at: string;
};

export type TopicList = {
  readonly topics: ReadonlyArray<Topic>;
};

export type TrialCall = {
  readonly tool: string;
  readonly user: string | null;
  readonly agent: string | null;
  readonly arguments: ReadonlyArray<string>;
  readonly at: string;
};

export type TurnClaim = {
  readonly busy?: "enqueue" | "fork" | "interrupt" | "merge" | "reject";
  readonly lease_seconds?: number;
  readonly holder?: string;
};

export type TurnRenewal = {
  readonly lease_seconds?: number;
};

export type Verdict = {
  readonly decision: "approve" | "deny";
  readonly comment?: string;
};

export type Verification = {
  readonly tenant_id: string;
  readonly progress: ChainProgress;
  readonly end: number;
  readonly complete: boolean;
  readonly fault: Fault | null;
};

export type VerifyRequest = {
  readonly progress?: ProgressGiven | null;
  readonly heads?: ReadonlyArray<HeadGiven>;
  readonly limit?: number;
};

export type WhyNot = {
  readonly reason: "below the cut" | "buried" | "deleted" | "expired" | "faded" | "filtered" | "no embedding yet" | "not yet valid" | "returned" | "scope" | "superseded" | "unknown";
  readonly detail: string;
  readonly rank?: number | null;
  readonly score?: number | null;
};

export interface Operations {
  "GET /api/agents": { path: {}; query: {}; body: undefined; answer: AgentList };
  "GET /api/agents/{agent}/skills": { path: { agent: string }; query: {}; body: undefined; answer: AgentSkillList };
  "DELETE /api/agents/{agent}/skills/{name}": { path: { agent: string; name: string }; query: { version?: number | null }; body: undefined; answer: undefined };
  "PUT /api/agents/{agent}/skills/{name}": { path: { agent: string; name: string }; query: {}; body: AgentSkill; answer: Assignment };
  "DELETE /api/agents/{name}": { path: { name: string }; query: {}; body: undefined; answer: undefined };
  "GET /api/agents/{name}": { path: { name: string }; query: {}; body: undefined; answer: Definition };
  "PUT /api/agents/{name}": { path: { name: string }; query: {}; body: AgentChange; answer: Definition };
  "GET /api/approvals": { path: {}; query: { user?: string | null; limit?: number }; body: undefined; answer: ApprovalList };
  "GET /api/approvals/{id}": { path: { id: string }; query: {}; body: undefined; answer: Approval };
  "POST /api/approvals/{id}": { path: { id: string }; query: {}; body: Verdict; answer: Approval };
  "GET /api/audit": { path: {}; query: { user?: string | null; action?: string | null; outcome?: "cancelled" | "done" | "failed" | "refused" | "unknown" | "waiting" | null; target?: string | null; since?: string | null; limit?: number; before?: number | null }; body: undefined; answer: AuditPage };
  "POST /api/audit/erase": { path: {}; query: {}; body: ErasureRequest; answer: ErasedEntries };
  "GET /api/audit/export": { path: {}; query: {}; body: undefined; answer: undefined };
  "GET /api/audit/news": { path: {}; query: { after?: number | null; user?: string | null; action?: string | null; outcome?: "cancelled" | "done" | "failed" | "refused" | "unknown" | "waiting" | null; target?: string | null; since?: string | null; limit?: number }; body: undefined; answer: AuditNews };
  "POST /api/audit/verify": { path: {}; query: {}; body: VerifyRequest; answer: Verification };
  "POST /api/chat": { path: {}; query: {}; body: ChatRequest; answer: ChatReply };
  "GET /api/commands": { path: {}; query: { state?: "cancelled" | "dead" | "done" | "failed" | "queued" | "running" | null; skill?: string | null; limit?: number; before?: string | null }; body: undefined; answer: CommandPage };
  "POST /api/commands": { path: {}; query: {}; body: NewCommand; answer: CommandState };
  "GET /api/commands/{id}": { path: { id: string }; query: { wait?: number }; body: undefined; answer: CommandState };
  "POST /api/commands/{id}/cancel": { path: { id: string }; query: {}; body: undefined; answer: CommandState };
  "GET /api/commands/{id}/completions": { path: { id: string }; query: {}; body: undefined; answer: CompletionList };
  "GET /api/connections": { path: {}; query: {}; body: undefined; answer: ConnectionList };
  "DELETE /api/connections/{source}": { path: { source: string }; query: {}; body: undefined; answer: Removal };
  "POST /api/connections/{source}": { path: { source: string }; query: {}; body: undefined; answer: ConsentUrl };
  "GET /api/conversations": { path: {}; query: { user?: string | null; app?: string | null; agent?: string | null; document?: boolean; spoken?: boolean; openings?: boolean; limit?: number; cursor?: string | null }; body: undefined; answer: ConversationPage };
  "POST /api/conversations": { path: {}; query: {}; body: NewConversation; answer: Conversation };
  "GET /api/conversations/by-session": { path: {}; query: { session_id: string }; body: undefined; answer: Conversation };
  "GET /api/conversations/search": { path: {}; query: { text: string; user?: string | null; app?: string | null; agent?: string | null; limit?: number; cursor?: string | null }; body: undefined; answer: FoundPage };
  "DELETE /api/conversations/{id}": { path: { id: string }; query: {}; body: undefined; answer: undefined };
  "GET /api/conversations/{id}": { path: { id: string }; query: {}; body: undefined; answer: Conversation };
  "GET /api/conversations/{id}/events": { path: { id: string }; query: { since?: string | null; limit?: number }; body: undefined; answer: EventPage };
  "GET /api/conversations/{id}/export": { path: { id: string }; query: {}; body: undefined; answer: undefined };
  "POST /api/conversations/{id}/fork": { path: { id: string }; query: {}; body: ConversationFork; answer: Conversation };
  "GET /api/conversations/{id}/messages": { path: { id: string }; query: { reader?: string | null; limit?: number; tools?: boolean }; body: undefined; answer: Messages };
  "GET /api/conversations/{id}/nodes": { path: { id: string }; query: { before?: number | null; since?: number | null; limit?: number }; body: undefined; answer: NodePage };
  "POST /api/conversations/{id}/nodes": { path: { id: string }; query: {}; body: NewNode; answer: Node };
  "POST /api/conversations/{id}/nodes/batch": { path: { id: string }; query: {}; body: NewNodes; answer: Nodes };
  "DELETE /api/conversations/{id}/state": { path: { id: string }; query: { key: string }; body: undefined; answer: undefined };
  "GET /api/conversations/{id}/state": { path: { id: string }; query: {}; body: undefined; answer: StateEntries };
  "PATCH /api/conversations/{id}/state": { path: { id: string }; query: {}; body: StateChange; answer: StateEntries };
  "GET /api/conversations/{id}/state/changes": { path: { id: string }; query: { since?: number | null; limit?: number }; body: undefined; answer: StateChanges };
  "POST /api/conversations/{id}/turns": { path: { id: string }; query: {}; body: TurnClaim; answer: ClaimedTurn };
  "DELETE /api/conversations/{id}/turns/{number}": { path: { id: string; number: number }; query: {}; body: undefined; answer: undefined };
  "PUT /api/conversations/{id}/turns/{number}": { path: { id: string; number: number }; query: {}; body: TurnRenewal; answer: ClaimedTurn };
  "GET /api/dead-letters": { path: {}; query: { group?: string | null; topic?: string | null; limit?: number; before?: string | null }; body: undefined; answer: DeadLetterPage };
  "POST /api/dead-letters/redrive": { path: {}; query: {}; body: Redrive; answer: Redriven };
  "DELETE /api/dead-letters/{id}": { path: { id: string }; query: {}; body: undefined; answer: undefined };
  "GET /api/dead-letters/{id}": { path: { id: string }; query: {}; body: undefined; answer: DeadLetter };
  "POST /api/dead-letters/{id}/redrive": { path: { id: string }; query: {}; body: undefined; answer: undefined };
  "GET /api/executions": { path: {}; query: { tool?: string | null; status?: "cancelled" | "done" | "failed" | "running" | "unknown" | null; user?: string | null; limit?: number; before?: string | null }; body: undefined; answer: ExecutionPage };
  "GET /api/executions/{id}": { path: { id: string }; query: {}; body: undefined; answer: Execution };
  "POST /api/executions/{id}/cancel": { path: { id: string }; query: {}; body: undefined; answer: Execution };
  "POST /api/executions/{id}/decision": { path: { id: string }; query: {}; body: ExecutionDecision; answer: Execution };
  "GET /api/executions/{id}/output": { path: { id: string }; query: {}; body: undefined; answer: undefined };
  "GET /api/executions/{id}/sandbox": { path: { id: string }; query: {}; body: undefined; answer: SandboxExecutionList };
  "POST /api/gateway/explain": { path: {}; query: {}; body: CallToExplain; answer: Explanation };
  "POST /api/gateway/rule-tests": { path: {}; query: {}; body: RulesTrial; answer: RulesTest };
  "GET /api/gateway/rules": { path: {}; query: {}; body: undefined; answer: RulesDetail };
  "POST /api/gateway/rules": { path: {}; query: {}; body: RulesAddition; answer: RulesDetail };
  "PUT /api/gateway/rules": { path: {}; query: {}; body: RulesChange; answer: RulesDetail };
  "DELETE /api/gateway/rules/{name}": { path: { name: string }; query: {}; body: undefined; answer: undefined };
  "GET /api/gateway/rules/{name}": { path: { name: string }; query: {}; body: undefined; answer: RuleSummary };
  "GET /api/graph/duplicates": { path: {}; query: { scope?: "agent" | "organization" | "user"; name?: string | null; limit?: number }; body: undefined; answer: DuplicateList };
  "GET /api/graph/entities": { path: {}; query: { query: string; scope?: "agent" | "organization" | "user" | null; name?: string | null; limit?: number }; body: undefined; answer: FoundEntities };
  "GET /api/graph/entities/{id}": { path: { id: string }; query: { limit?: number; cursor?: string | null }; body: undefined; answer: EntityView };
  "GET /api/graph/entities/{id}/neighbours": { path: { id: string }; query: { limit?: number }; body: undefined; answer: NeighbourList };
  "POST /api/graph/merges": { path: {}; query: {}; body: NewMerge; answer: MergeMade };
  "DELETE /api/graph/merges/{id}": { path: { id: string }; query: {}; body: undefined; answer: undefined };
  "GET /api/graph/paths": { path: {}; query: { source: string; target: string; hops?: number; scope?: "agent" | "organization" | "user" | null; name?: string | null; limit?: number }; body: undefined; answer: PathList };
  "GET /api/groups": { path: {}; query: { group?: string | null }; body: undefined; answer: GroupLag };
  "POST /api/groups/{group}/reset": { path: { group: string }; query: {}; body: GroupReset; answer: GroupPositions };
  "GET /api/identity/keys": { path: {}; query: {}; body: undefined; answer: IdentityKeyList };
  "POST /api/identity/keys": { path: {}; query: {}; body: KeyRotation; answer: IdentityKeyList };
  "GET /api/ids": { path: {}; query: { kind: "approval" | "dead_letter" | "document" | "execution" | "ingest_job" | "memory" | "research" | "run"; prefix: string }; body: undefined; answer: IdList };
  "GET /api/keys": { path: {}; query: {}; body: undefined; answer: KeyList };
  "POST /api/keys": { path: {}; query: {}; body: KeyRequest; answer: NewKey };
  "POST /api/keys/link": { path: {}; query: {}; body: LinkRequest; answer: SignInLink };
  "DELETE /api/keys/{id}": { path: { id: string }; query: {}; body: undefined; answer: Key };
  "GET /api/knowledge": { path: {}; query: { scope?: "agent" | "organization" | "user" | null; owner?: string | null; collection?: string | null; name?: string | null; status?: "failed" | "pending" | "ready" | "running" | null; limit?: number; cursor?: string | null }; body: undefined; answer: DocumentPage };
  "POST /api/knowledge": { path: {}; query: { name: string; collection?: string; scope?: "agent" | "organization" | "user"; owner?: string | null; title?: string | null; source?: string | null; metadata?: string | null; wait?: boolean }; body: undefined; answer: AddedDocument };
  "GET /api/knowledge/collections": { path: {}; query: { scope?: "agent" | "organization" | "user" | null; owner?: string | null }; body: undefined; answer: Collections };
  "POST /api/knowledge/erase": { path: {}; query: {}; body: Erasure; answer: ErasedKnowledge };
  "GET /api/knowledge/export": { path: {}; query: { scope?: "agent" | "organization" | "user"; owner?: string | null }; body: undefined; answer: undefined };
  "GET /api/knowledge/jobs": { path: {}; query: { state?: "done" | "failed" | "pending" | "running" | "superseded" | null; limit?: number; cursor?: string | null }; body: undefined; answer: JobPage };
  "POST /api/knowledge/jobs/progress": { path: {}; query: {}; body: FollowedJobs; answer: JobList };
  "GET /api/knowledge/jobs/{id}": { path: { id: string }; query: {}; body: undefined; answer: IngestJob };
  "POST /api/knowledge/jobs/{id}/retry": { path: { id: string }; query: {}; body: undefined; answer: IngestJob };
  "POST /api/knowledge/search": { path: {}; query: {}; body: KnowledgeQuery; answer: FoundPassages };
  "POST /api/knowledge/text": { path: {}; query: {}; body: NewText; answer: AddedDocument };
  "DELETE /api/knowledge/{id}": { path: { id: string }; query: {}; body: undefined; answer: undefined };
  "GET /api/knowledge/{id}": { path: { id: string }; query: {}; body: undefined; answer: Document };
  "PATCH /api/knowledge/{id}": { path: { id: string }; query: {}; body: DocumentChange; answer: Document };
  "GET /api/knowledge/{id}/chunks": { path: { id: string }; query: { after?: number | null; limit?: number }; body: undefined; answer: ChunkPage };
  "GET /api/knowledge/{id}/outline": { path: { id: string }; query: {}; body: undefined; answer: DocumentOutline };
  "GET /api/knowledge/{id}/text": { path: { id: string }; query: { section?: string | null; page?: number | null; chunk?: number | null; around?: number; start?: number | null; end?: number | null; limit?: number }; body: undefined; answer: Reading };
  "DELETE /api/limits": { path: {}; query: { name: string; as_operator?: boolean }; body: undefined; answer: undefined };
  "GET /api/limits": { path: {}; query: {}; body: undefined; answer: LimitList };
  "PUT /api/limits": { path: {}; query: {}; body: LimitRequest; answer: StoredLimit };
  "GET /api/limits/models": { path: {}; query: { days?: number; limit?: number }; body: undefined; answer: ModelUsageList };
  "GET /api/limits/usage": { path: {}; query: { name?: string | null; limit?: number }; body: undefined; answer: LimitUsageList };
  "GET /api/me": { path: {}; query: {}; body: undefined; answer: Me };
  "GET /api/memories": { path: {}; query: { scope?: "agent" | "organization" | "session" | "user"; name?: string | null; agent?: string | null; also_past?: boolean; limit?: number; cursor?: string | null }; body: undefined; answer: MemoryPage };
  "POST /api/memories": { path: {}; query: {}; body: NewMemories; answer: MemoryList };
  "POST /api/memories/context": { path: {}; query: {}; body: ContextSearch; answer: FoundMemories };
  "GET /api/memories/export": { path: {}; query: { scope?: "agent" | "organization" | "session" | "user"; name?: string | null; all?: boolean }; body: undefined; answer: undefined };
  "POST /api/memories/import": { path: {}; query: { scope?: "agent" | "organization" | "session" | "user" | null; name?: string | null; agent?: string | null; line?: number }; body: undefined; answer: ImportReport };
  "GET /api/memories/owners": { path: {}; query: { scope?: "agent" | "organization" | "session" | "user" | null; limit?: number; cursor?: string | null }; body: undefined; answer: MemoryOwners };
  "POST /api/memories/search": { path: {}; query: {}; body: Search; answer: FoundMemories };
  "POST /api/memories/sweep": { path: {}; query: {}; body: SweepRequest; answer: SweepReport };
  "POST /api/memories/why-not": { path: {}; query: {}; body: Absence; answer: WhyNot };
  "DELETE /api/memories/{id}": { path: { id: string }; query: {}; body: undefined; answer: undefined };
  "GET /api/memories/{id}": { path: { id: string }; query: {}; body: undefined; answer: Memory };
  "PATCH /api/memories/{id}": { path: { id: string }; query: {}; body: MemoryEdit; answer: Memory };
  "POST /api/memories/{id}/bury": { path: { id: string }; query: {}; body: Burial; answer: Memory };
  "GET /api/memories/{id}/chain": { path: { id: string }; query: {}; body: undefined; answer: MemoryList };
  "GET /api/memories/{id}/history": { path: { id: string }; query: { before?: number | null; limit?: number }; body: undefined; answer: MemoryHistory };
  "POST /api/memories/{id}/pin": { path: { id: string }; query: {}; body: Pinning; answer: Memory };
  "POST /api/memories/{id}/supersede": { path: { id: string }; query: {}; body: Successor; answer: Memory };
  "DELETE /api/nodes/{id}": { path: { id: string }; query: { version: number }; body: undefined; answer: Node };
  "GET /api/nodes/{id}": { path: { id: string }; query: {}; body: undefined; answer: Node };
  "PATCH /api/nodes/{id}": { path: { id: string }; query: {}; body: NodeEdit; answer: Node };
  "POST /api/nodes/{id}/move": { path: { id: string }; query: {}; body: NodeMove; answer: Node };
  "GET /api/nodes/{id}/revisions": { path: { id: string }; query: { since?: number | null; limit?: number }; body: undefined; answer: NodeRevisions };
  "GET /api/nodes/{id}/subtree": { path: { id: string }; query: { after?: string | null }; body: undefined; answer: Subtree };
  "GET /api/notes": { path: {}; query: { agent_id: string; user?: string | null }; body: undefined; answer: Note };
  "PUT /api/notes": { path: {}; query: { agent_id: string; user?: string | null }; body: NoteEdit; answer: Note };
  "POST /api/notes/restore": { path: {}; query: { agent_id: string; user?: string | null }; body: NoteRestore; answer: Note };
  "GET /api/notes/revisions": { path: {}; query: { agent_id: string; user?: string | null; limit?: number; before?: number | null }; body: undefined; answer: NoteRevisions };
  "GET /api/proposals": { path: {}; query: { source?: string | null; state?: "approved" | "open" | "rejected" | "withdrawn" | null; limit?: number }; body: undefined; answer: ProposalList };
  "GET /api/registry/history": { path: {}; query: { kind?: "agent" | "agent_skill" | "secret" | "skill" | "skill_dependency" | "skill_tool" | "source" | "tool" | null; name?: string | null; limit?: number; before?: string | null }; body: undefined; answer: RegistryHistory };
  "GET /api/research": { path: {}; query: { user?: string | null; limit?: number; cursor?: string | null }; body: undefined; answer: ResearchPage };
  "POST /api/research": { path: {}; query: {}; body: StartResearch; answer: ResearchRun };
  "DELETE /api/research/{id}": { path: { id: string }; query: {}; body: undefined; answer: undefined };
  "GET /api/research/{id}": { path: { id: string }; query: {}; body: undefined; answer: ResearchDetail };
  "POST /api/research/{id}/cancel": { path: { id: string }; query: {}; body: undefined; answer: ResearchRun };
  "GET /api/research/{id}/events": { path: { id: string }; query: { since?: number; limit?: number }; body: undefined; answer: ResearchEvents };
  "POST /api/research/{id}/resume": { path: { id: string }; query: {}; body: ResumeResearch; answer: ResearchRun };
  "GET /api/runs": { path: {}; query: { conversation?: string | null; user?: string | null; state?: "cancelled" | "done" | "failed" | "queued" | "running" | "waiting" | null; limit?: number; cursor?: string | null }; body: undefined; answer: RunPage };
  "GET /api/runs/{id}": { path: { id: string }; query: { since?: number }; body: undefined; answer: RunStory };
  "POST /api/runs/{id}/cancel": { path: { id: string }; query: {}; body: undefined; answer: AgentRun };
  "POST /api/runs/{id}/retry": { path: { id: string }; query: {}; body: undefined; answer: AgentRun };
  "GET /api/secrets": { path: {}; query: {}; body: undefined; answer: SecretList };
  "DELETE /api/secrets/{name}": { path: { name: string }; query: {}; body: undefined; answer: undefined };
  "PUT /api/secrets/{name}": { path: { name: string }; query: {}; body: SecretValue; answer: KnownSecret };
  "GET /api/services": { path: {}; query: {}; body: undefined; answer: ServiceList };
  "GET /api/sessions/active": { path: {}; query: { agent_id: string }; body: undefined; answer: Active };
  "PUT /api/sessions/active": { path: {}; query: { agent_id: string }; body: Activation; answer: Active };
  "POST /api/sessions/end": { path: {}; query: {}; body: Ending; answer: undefined };
  "GET /api/skills": { path: {}; query: { query?: string | null; limit?: number | null; after?: string | null }; body: undefined; answer: SkillPage };
  "POST /api/skills/import": { path: {}; query: {}; body: SkillFolder; answer: ImportedSkill };
  "DELETE /api/skills/{name}": { path: { name: string }; query: { version?: number | null }; body: undefined; answer: undefined };
  "GET /api/skills/{name}": { path: { name: string }; query: {}; body: undefined; answer: SkillDetail };
  "PUT /api/skills/{name}": { path: { name: string }; query: {}; body: SkillChange; answer: SkillDetail };
  "PUT /api/skills/{name}/active": { path: { name: string }; query: {}; body: ActiveChange; answer: SkillDetail };
  "GET /api/skills/{name}/export": { path: { name: string }; query: {}; body: undefined; answer: SkillFolder };
  "GET /api/skills/{name}/files/{path}": { path: { name: string; path: string }; query: {}; body: undefined; answer: undefined };
  "DELETE /api/skills/{name}/needs/{other}": { path: { name: string; other: string }; query: { version?: number | null }; body: undefined; answer: undefined };
  "PUT /api/skills/{name}/needs/{other}": { path: { name: string; other: string }; query: {}; body: SkillNeed; answer: SkillDependency };
  "DELETE /api/skills/{name}/tools/{tool}": { path: { name: string; tool: string }; query: { version?: number | null }; body: undefined; answer: undefined };
  "PUT /api/skills/{name}/tools/{tool}": { path: { name: string; tool: string }; query: {}; body: SkillTool; answer: ToolLink };
  "GET /api/sources": { path: {}; query: {}; body: undefined; answer: SourceList };
  "POST /api/sources": { path: {}; query: {}; body: NewSource; answer: SourceReport };
  "DELETE /api/sources/{name}": { path: { name: string }; query: { force?: boolean; version?: number | null }; body: undefined; answer: RemovedSource };
  "GET /api/sources/{name}": { path: { name: string }; query: {}; body: undefined; answer: SourceDetails };
  "PUT /api/sources/{name}": { path: { name: string }; query: {}; body: SourceChange; answer: SourceReport };
  "POST /api/sources/{name}/identity": { path: { name: string }; query: {}; body: undefined; answer: IdentityCheck };
  "GET /api/sources/{name}/imports": { path: { name: string }; query: { limit?: number }; body: undefined; answer: SourceImportList };
  "GET /api/sources/{name}/imports/{revision}": { path: { name: string; revision: number }; query: {}; body: undefined; answer: ImportDetails };
  "POST /api/sources/{name}/proposals": { path: { name: string }; query: {}; body: ProposalDecision; answer: DecidedProposals };
  "POST /api/sources/{name}/reload": { path: { name: string }; query: {}; body: Reloading; answer: SourceReport };
  "GET /api/tenants": { path: {}; query: {}; body: undefined; answer: TenantList };
  "POST /api/tenants": { path: {}; query: {}; body: NewTenant; answer: Tenant };
  "GET /api/tools": { path: {}; query: { query?: string | null; source?: string | null; kind?: "bash" | "function" | "graphql" | "java" | "javascript" | "jsonrpc" | "mcp_server" | "python" | "rest" | null; limit?: number | null; after?: string | null }; body: undefined; answer: ToolPage };
  "DELETE /api/tools/{name}": { path: { name: string }; query: { version?: number | null }; body: undefined; answer: undefined };
  "GET /api/tools/{name}": { path: { name: string }; query: {}; body: undefined; answer: ToolDetail };
  "PUT /api/tools/{name}": { path: { name: string }; query: {}; body: ToolChange; answer: ToolDetail };
  "PUT /api/tools/{name}/active": { path: { name: string }; query: {}; body: ActiveChange; answer: ToolDetail };
  "POST /api/tools/{name}/call": { path: { name: string }; query: {}; body: DirectCall; answer: Execution };
  "PUT /api/tools/{name}/permissions": { path: { name: string }; query: {}; body: ToolPermissions; answer: ToolDetail };
  "GET /api/topics": { path: {}; query: {}; body: undefined; answer: TopicList };
  "POST /api/topics": { path: {}; query: {}; body: NewTopic; answer: MadeTopic };
  "DELETE /api/topics/{name}": { path: { name: string }; query: {}; body: undefined; answer: undefined };
  "GET /api/topics/{name}/records": { path: { name: string }; query: { partition?: number | null; offset?: number | null; at?: string | null; positions?: string | null; newest?: boolean; limit?: number }; body: undefined; answer: RecordPage };
  "POST /api/topics/{name}/records": { path: { name: string }; query: {}; body: NewRecord; answer: PublishedRecord };
  "GET /healthz": { path: {}; query: {}; body: undefined; answer: Health };
  "GET /readyz": { path: {}; query: {}; body: undefined; answer: Readiness };
}
