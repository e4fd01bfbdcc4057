//! The memory store passes the conformance suite in both of its forms.

use futures_util::future::BoxFuture;
use mainspring_kernel::Timestamp;
use mainspring_store::Store;
use mainspring_store::conformance::{ModelStore, differ, exercise};
use mainspring_store_memory::disk::SimDisk;
use mainspring_store_memory::{MemoryConfig, MemoryStore};
use std::sync::Arc;

#[tokio::test]
async fn the_ephemeral_store_conforms() {
    exercise(&|| -> BoxFuture<'static, Arc<dyn Store>> {
        Box::pin(async {
            Arc::new(MemoryStore::ephemeral(MemoryConfig::standard(1))) as Arc<dyn Store>
        })
    })
    .await;
}

#[tokio::test]
async fn the_journaled_store_conforms() {
    exercise(&|| -> BoxFuture<'static, Arc<dyn Store>> {
        Box::pin(async {
            let config = MemoryConfig { segment_bytes: 1 << 16, ..MemoryConfig::standard(1) };
            let disk = Arc::new(SimDisk::new());
            let store = MemoryStore::open(disk, config, Timestamp::EPOCH).unwrap();
            Arc::new(store) as Arc<dyn Store>
        })
    })
    .await;
}

#[tokio::test]
async fn random_sequences_leave_it_equal_to_the_model() {
    for seed in 0..150 {
        let config = MemoryConfig { segment_bytes: 1 << 16, ..MemoryConfig::standard(seed) };
        let disk = Arc::new(SimDisk::new());
        let store = MemoryStore::open(disk, config, Timestamp::EPOCH).unwrap();
        differ(seed, 120, Arc::new(ModelStore::default()), Arc::new(store)).await;
    }
}
