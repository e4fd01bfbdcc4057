//! The statements: one file each under `queries/`, written for the schema `mainspring` and told to
//! use another one when the store is opened. Types of parameters are named here, so that a
//! statement needs no second round trip, whether it is prepared or not.

use crate::config::SCHEMA;
use tokio_postgres::types::Type;

macro_rules! queries {
    ($($name:ident = $file:literal [$($kind:ident),*];)+) => {
        /// A statement.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Query {
            $(#[doc = concat!("`queries/", $file, ".sql`")] $name),+
        }

        impl Query {
            /// Every statement.
            pub const ALL: &[Query] = &[$(Query::$name),+];

            /// The name of its file, without the ending.
            pub const fn file(self) -> &'static str {
                match self { $(Query::$name => $file),+ }
            }

            const fn written(self) -> &'static str {
                match self {
                    $(Query::$name => include_str!(concat!("../queries/", $file, ".sql"))),+
                }
            }

            /// The types of its parameters.
            pub const fn types(self) -> &'static [Type] {
                match self { $(Query::$name => &[$(Type::$kind),*]),+ }
            }
        }
    };
}

queries! {
    // What every commit may need to know.
    Guard = "guard" [INT8];
    GuardForChange = "guard_for_change" [INT8];
    ReadVersion = "read_version" [];
    LoadJobs = "load_jobs" [UUID_ARRAY];
    LoadEffects = "load_effects" [UUID_ARRAY, TEXT_ARRAY];
    LoadItems = "load_items" [UUID_ARRAY];
    LoadEntities = "load_entities" [INT2_ARRAY, UUID_ARRAY];
    LoadKeys = "load_keys" [UUID_ARRAY];
    LockReady = "lock_ready" [INT4_ARRAY, INT8_ARRAY, UUID_ARRAY, INT4];
    PeekReady = "peek_ready" [INT4_ARRAY, INT8_ARRAY, UUID_ARRAY, INT4];
    FindLanes = "find_lanes" [INT4];
    LockLimits = "lock_limits" [UUID_ARRAY];
    CountLimits = "count_limits" [UUID_ARRAY];
    LoadMeters = "load_meters" [UUID_ARRAY];
    // What a commit writes.
    SetMeters = "set_meters" [UUID_ARRAY, TIMESTAMPTZ_ARRAY, BYTEA_ARRAY];
    InsertJobs = "insert_jobs" [UUID_ARRAY, INT4_ARRAY, INT2_ARRAY, INT2_ARRAY, INT4_ARRAY,
        TIMESTAMPTZ, TIMESTAMPTZ_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY];
    InsertReady = "insert_ready" [INT4_ARRAY, INT8_ARRAY, UUID_ARRAY, TIMESTAMPTZ_ARRAY, BOOL_ARRAY];
    InsertWaiting = "insert_waiting"
        [UUID_ARRAY, TIMESTAMPTZ_ARRAY, INT4_ARRAY, INT8_ARRAY, BOOL_ARRAY];
    InsertExpiry = "insert_expiry" [TIMESTAMPTZ_ARRAY, UUID_ARRAY];
    DeleteExpiry = "delete_expiry" [TIMESTAMPTZ_ARRAY, UUID_ARRAY];
    DeleteReady = "delete_ready" [INT4_ARRAY, INT8_ARRAY, UUID_ARRAY];
    DeleteWaiting = "delete_waiting" [INT4_ARRAY, INT8_ARRAY, UUID_ARRAY, INT4_ARRAY];
    HastenJobs = "hasten_jobs" [UUID_ARRAY, TIMESTAMPTZ_ARRAY, TEXT_ARRAY];
    InsertLive = "insert_live" [UUID_ARRAY, INT2_ARRAY, INT4_ARRAY, TIMESTAMPTZ_ARRAY, UUID_ARRAY,
        TEXT_ARRAY, BYTEA_ARRAY];
    UpdateLive = "update_live" [UUID_ARRAY, INT4_ARRAY, INT2_ARRAY, TIMESTAMPTZ_ARRAY, UUID_ARRAY,
        TEXT_ARRAY, BYTEA_ARRAY];
    DeleteLive = "delete_live" [UUID_ARRAY, INT4_ARRAY];
    InsertFinished = "insert_finished" [UUID_ARRAY, INT2_ARRAY, TIMESTAMPTZ_ARRAY, BYTEA_ARRAY];
    InsertEffects = "insert_effects"
        [UUID_ARRAY, TEXT_ARRAY, INT4_ARRAY, TEXT_ARRAY, TIMESTAMPTZ_ARRAY];
    PutCheckpoints = "put_checkpoints" [UUID_ARRAY, TEXT_ARRAY];
    DeleteCheckpoints = "delete_checkpoints" [UUID_ARRAY];
    InsertKeys = "insert_keys"
        [UUID_ARRAY, UUID_ARRAY, UUID_ARRAY, UUID_ARRAY, TIMESTAMPTZ_ARRAY];
    FreeKeys = "free_keys" [UUID_ARRAY, UUID_ARRAY, TIMESTAMPTZ_ARRAY];
    InsertItems = "insert_items" [UUID_ARRAY, INT4_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY,
        TEXT_ARRAY, TIMESTAMPTZ_ARRAY, BYTEA_ARRAY];
    UpdateItems = "update_items" [UUID_ARRAY, INT4_ARRAY, INT4_ARRAY, TEXT_ARRAY, BYTEA_ARRAY];
    InsertEntities = "insert_entities" [INT2_ARRAY, UUID_ARRAY, INT4_ARRAY, TEXT_ARRAY, TEXT_ARRAY,
        TEXT_ARRAY, TIMESTAMPTZ_ARRAY, BYTEA_ARRAY];
    UpdateEntities = "update_entities" [INT2_ARRAY, UUID_ARRAY, INT4_ARRAY, INT4_ARRAY, TEXT_ARRAY,
        TIMESTAMPTZ_ARRAY, BYTEA_ARRAY];
    DeleteEntities = "delete_entities" [INT2_ARRAY, UUID_ARRAY, INT4_ARRAY];
    InsertEntityTerms = "insert_entity_terms" [INT8_ARRAY, INT2_ARRAY, UUID_ARRAY];
    DeleteEntityTerms = "delete_entity_terms" [INT8_ARRAY, INT2_ARRAY, UUID_ARRAY];
    InsertTerms = "insert_terms" [INT8_ARRAY, UUID_ARRAY];
    DeleteTerms = "delete_terms" [INT8_ARRAY, UUID_ARRAY];
    InsertItemTerms = "insert_item_terms" [INT8_ARRAY, UUID_ARRAY];
    SetType = "set_type" [TEXT, TEXT, INT2, INT2, INT4, BOOL, BYTEA, BOOL, TEXT, TEXT];
    SetQueue = "set_queue" [TEXT, BOOL, BOOL, INT4, INT8, INT8];
    SetToken = "set_token" [UUID, BYTEA];
    AddLanes = "add_lanes" [TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY, TEXT_ARRAY];
    ReorderReady = "reorder_ready" [TEXT, BOOL];
    ReorderWaiting = "reorder_waiting" [TEXT, BOOL];
    SplitLanes = "split_lanes" [TEXT, BOOL, BOOL, BOOL];
    RelaneReady = "relane_ready" [TEXT, BOOL, BOOL, BOOL];
    RelaneWaiting = "relane_waiting" [TEXT, BOOL, BOOL, BOOL];
    RelimitLive = "relimit_live" [UUID_ARRAY, UUID_ARRAY];
    LoadRunning = "load_running" [TEXT];
    InsertOutbox = "insert_outbox" [INT4, BYTEA, TEXT_ARRAY, INT8_ARRAY];
    // The registries.
    LoadTypes = "load_types" [];
    LoadQueues = "load_queues" [];
    LoadTokens = "load_tokens" [];
    LoadToken = "load_token" [UUID];
    LoadLanes = "load_lanes" [INT4];
    CountLanes = "count_lanes" [];
    SetStrict = "set_strict" [BOOL, INT8];
    // Time.
    PromoteDue = "promote_due" [TIMESTAMPTZ, INT4];
    NextInstants = "next_instants" [TIMESTAMPTZ, TIMESTAMPTZ, TIMESTAMPTZ];
    HasReady = "has_ready" [];
    NextAlarm = "next_alarm" [];
    FindOverdue = "find_overdue" [TIMESTAMPTZ, TIMESTAMPTZ, INT4];
    FindAlarms = "find_alarms" [TIMESTAMPTZ, INT8];
    NextEntityAlarm = "next_entity_alarm" [TIMESTAMPTZ];
    FindRunning = "find_running" [TIMESTAMPTZ];
    FindHeld = "find_held" [UUID_ARRAY];
    // Reading.
    ReadCheckpoints = "read_checkpoints" [UUID_ARRAY];
    FindByTerms = "find_by_terms" [INT8_ARRAY, INT2, INT8];
    HasJob = "has_job" [UUID, TEXT, TEXT];
    FindEnded = "find_ended" [UUID_ARRAY];
    ReadJob = "read_job" [UUID];
    ReadEffects = "read_effects" [UUID_ARRAY];
    FindHolders = "find_holders" [UUID, INT4];
    CountAhead = "count_ahead" [INT4, INT8, UUID, INT4];
    FindReady = "find_ready" [INT4, INT8, UUID];
    FindFresh = "find_fresh" [INT4_ARRAY];
    ReadItem = "read_item" [UUID, TEXT, TEXT];
    ListEntities = "list_entities" [INT8, INT2, UUID, INT8];
    CountEntities = "count_entities" [INT8, INT2, INT8];
    OldestDue = "oldest_due" [];
    CountOpenItems = "count_open_items" [];
    ReadTally = "read_tally" [];
    TakeOutbox = "take_outbox" [INT8, INT4];
    InsertStream = "insert_stream" [INT8_ARRAY, INT4_ARRAY, TIMESTAMPTZ, BYTEA_ARRAY];
    AddTally = "add_tally" [TEXT_ARRAY, INT8_ARRAY];
    ReadHeld = "read_held" [];
    ForgetTallies = "forget_tallies" [];
    ReadStream = "read_stream" [INT8, INT4];
    OldestStream = "oldest_stream" [];
    LockStamp = "lock_stamp" [];
    ReadHorizon = "read_horizon" [];
    FindLate = "find_late" [];
    // Upkeep.
    SeeNode = "see_node" [UUID, TEXT, TEXT, TIMESTAMPTZ, BYTEA, INT4];
    ReadWorkers = "read_workers" [UUID, TIMESTAMPTZ, INT4];
    LookAtClock = "look_at_clock" [INT8];
    CorrectClock = "correct_clock" [INT8, INT8, INT8, INT8_ARRAY, INT8_ARRAY];
    ForgetNode = "forget_node" [UUID];
    CountNodes = "count_nodes" [UUID, TIMESTAMPTZ, INT4, INT4];
    MakePartitions = "make_partitions" [INT4];
    ListPartitions = "list_partitions" [];
    DeleteKeys = "delete_keys" [TIMESTAMPTZ, INT4];
    ForgetMeters = "forget_meters" [TIMESTAMPTZ, INT4];
    ForgetLanes = "forget_lanes" [INT4];
    DeleteItems = "delete_items" [TIMESTAMPTZ, INT4];
    FindUnlistedItems = "find_unlisted_items" [INT4];
    MarkItemsListed = "mark_items_listed" [UUID_ARRAY, INT4_ARRAY];
    ForgetTerms = "forget_terms" [TIMESTAMPTZ, INT4];
    Notify = "notify" [TEXT, TEXT];
}

/// The texts for one schema.
#[derive(Debug)]
pub struct Queries {
    schema: String,
    texts: Vec<String>,
}

impl Queries {
    /// The statements for `schema`.
    pub fn new(schema: &str) -> Self {
        let texts = Query::ALL.iter().map(|query| in_schema(query.written(), schema)).collect();
        Queries { schema: schema.to_owned(), texts }
    }

    /// The schema they are for.
    pub fn schema(&self) -> &str {
        &self.schema
    }

    /// The text of one.
    pub fn text(&self, query: Query) -> &str {
        &self.texts[query as usize]
    }
}

/// SQL that was written for the usual schema, for another one. The name is checked when the
/// configuration is read: lower-case letters, digits and underscores.
pub(crate) fn in_schema(sql: &str, schema: &str) -> String {
    match schema {
        SCHEMA => sql.to_owned(),
        other => sql.replace("mainspring.", &format!("{other}.")),
    }
}
