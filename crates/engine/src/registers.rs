//! Looking things up that are no jobs: dead-letter items, entities, types, queues and tokens. The
//! store answers; nothing here waits for anything else.

use crate::engine::Engine;
use mainspring_kernel::flow::{CircuitState, Meter, Meters};
use mainspring_kernel::governance::is_reserved;
use mainspring_kernel::job::Effect;
use mainspring_kernel::{
    DlqId, DlqItem, Entity, EntityId, JobId, QueueSpec, Token, TokenId, TypeSpec,
};
use mainspring_store::{EntityFilter, Error, Fatal, ItemFilter, Page, Scope, StepsPage};
use tokio::sync::watch;

impl Engine {
    /// One dead-letter item.
    ///
    /// # Errors
    /// If the store failed.
    pub async fn item(&self, id: DlqId) -> Result<Option<DlqItem>, Error> {
        self.shared.store.item(id).await
    }

    /// One dead-letter item, if it is in `scope`.
    ///
    /// # Errors
    /// If the store failed.
    pub async fn item_within(&self, id: DlqId, scope: &Scope) -> Result<Option<DlqItem>, Error> {
        self.shared.store.item_within(id, scope).await
    }

    /// Dead-letter items, newest first.
    ///
    /// # Errors
    /// If the store failed.
    pub async fn items(
        &self,
        filter: &ItemFilter,
        before: Option<DlqId>,
        limit: usize,
    ) -> Result<Page<DlqItem>, Error> {
        self.shared.store.items(filter, before, limit).await
    }

    /// How many dead-letter items a filter admits, counted up to `most`.
    ///
    /// # Errors
    /// If the store failed.
    pub async fn count_items(&self, filter: &ItemFilter, most: usize) -> Result<usize, Error> {
        self.shared.store.count_items(filter, most).await
    }

    /// Every committed effect of a job, in the order of their commits.
    ///
    /// # Errors
    /// If the store failed.
    pub async fn effects(&self, id: JobId) -> Result<Vec<Effect>, Error> {
        self.shared.store.effects(id).await
    }

    /// Tells whoever passes events on that subscriptions have changed.
    pub fn ring_bus(&self) {
        self.shared.bus_changed.send_modify(|rung| *rung += 1);
    }

    /// Changes when subscriptions were changed by this server.
    pub fn bus_changed(&self) -> watch::Receiver<u64> {
        self.shared.bus_changed.subscribe()
    }

    /// Durable moves of all jobs after `position` without what is known of the jobs; about `limit`.
    ///
    /// # Errors
    /// If the store failed.
    pub async fn steps_after(&self, position: u64, limit: usize) -> Result<StepsPage, Error> {
        self.shared.store.steps_after(position, limit).await
    }

    /// What a part strikes that dies though the process needs it.
    pub fn fatal(&self) -> Fatal {
        self.shared.config.fatal.clone()
    }

    /// Changes when jobs have moved, here or elsewhere. A hint.
    pub fn moved(&self) -> watch::Receiver<u64> {
        self.shared.moved.subscribe()
    }

    /// One entity.
    ///
    /// # Errors
    /// If the store failed.
    pub async fn entity(&self, id: EntityId) -> Result<Option<Entity>, Error> {
        self.shared.store.entity(id).await
    }

    /// Entities of a kind, the greatest id first.
    ///
    /// # Errors
    /// If the store failed.
    pub async fn entities(
        &self,
        filter: &EntityFilter,
        before: Option<EntityId>,
        limit: usize,
    ) -> Result<Page<Entity, EntityId>, Error> {
        self.shared.store.entities(filter, before, limit).await
    }

    /// How many entities a filter admits, counted up to `most`.
    ///
    /// # Errors
    /// If the store failed.
    pub async fn count_entities(&self, filter: &EntityFilter, most: usize) -> Result<usize, Error> {
        self.shared.store.count_entities(filter, most).await
    }

    /// Every registered type, by name.
    ///
    /// # Errors
    /// If the store failed.
    pub async fn types(&self) -> Result<Vec<TypeSpec>, Error> {
        self.shared.store.types().await
    }

    /// Where the circuit of a type stands, if it has one.
    ///
    /// # Errors
    /// If the store failed.
    pub async fn circuit(&self, spec: &TypeSpec) -> Result<Option<CircuitState>, Error> {
        let Some(key) = Meters::circuit_key(spec) else { return Ok(None) };
        Ok(Some(match self.shared.store.meter(key).await? {
            Some(Meter::Circuit { state, .. }) => state,
            Some(Meter::Bucket(_)) | None => CircuitState::default(),
        }))
    }

    /// Rings when types may have changed, here or elsewhere. A hint.
    pub fn types_changed(&self) -> watch::Receiver<u64> {
        self.shared.types_changed.subscribe()
    }

    /// Every configured queue, by name; those of gates are told as gates.
    ///
    /// # Errors
    /// If the store failed.
    pub async fn queues(&self) -> Result<Vec<QueueSpec>, Error> {
        let mut queues = self.shared.store.queues().await?;
        queues.retain(|spec| !is_reserved(&spec.name));
        Ok(queues)
    }

    /// Every token, by id.
    ///
    /// # Errors
    /// If the store failed.
    pub async fn tokens(&self) -> Result<Vec<Token>, Error> {
        self.shared.store.tokens().await
    }

    /// One token.
    ///
    /// # Errors
    /// If the store failed.
    pub async fn token(&self, id: TokenId) -> Result<Option<Token>, Error> {
        self.shared.store.token(id).await
    }
}
