//! A durable job: `cargo run --package mainspring --example hello`.

use mainspring::{Mainspring, Task};

#[derive(serde::Serialize, serde::Deserialize)]
struct Greet(String);

impl Task for Greet {
    const TYPE: &'static str = "greet";
    type Output = String;
}

#[tokio::main]
async fn main() -> Result<(), mainspring::Error> {
    let spring = Mainspring::open("hello-data").await?;
    let greet = |Greet(name), _| async move { Ok(format!("hello {name}")) };
    let worker = spring.worker().on(greet).start();
    let job = spring.submit(&Greet("Ada".into())).await?;
    println!("{}", job.wait().await?);
    worker.stop().await?;
    spring.close().await
}
