//! beanstalkd, the peer that is on every machine and fast: driven by a tight blocking client over
//! its text protocol, so that the comparison does not flatter us.

use super::job::payload;
use super::latency::{Latency, at_rate};
use super::server::free_address;
use super::stopwatch::Stopwatch;
use anyhow::{Context, bail};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Commands written before their answers are read.
const PIPELINE: usize = 1_000;
/// Threads that drive connections.
const THREADS: usize = 2;

/// A running beanstalkd; it ends when dropped.
pub(crate) struct Beanstalkd {
    child: Child,
    address: SocketAddr,
}

/// Whether the program is installed.
pub(crate) fn is_present() -> bool {
    let version = Command::new("beanstalkd").arg("-v").stdout(Stdio::null()).status();
    version.is_ok_and(|status| status.success())
}

impl Beanstalkd {
    /// Starts one, with a log in `binlog` synced at every command if given.
    pub(crate) fn start(binlog: Option<&Path>) -> anyhow::Result<Self> {
        let address = free_address()?;
        let mut command = Command::new("beanstalkd");
        command.args(["-l", "127.0.0.1", "-p", &address.port().to_string()]);
        if let Some(binlog) = binlog {
            command.arg("-b").arg(binlog).args(["-f", "0"]);
        }
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let server = Beanstalkd { child, address };
        let stopwatch = Stopwatch::start();
        while TcpStream::connect(address).is_err() {
            if stopwatch.elapsed() > Duration::from_secs(10) {
                bail!("beanstalkd did not come up");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(server)
    }

    fn connect(&self) -> anyhow::Result<Lane> {
        let stream = TcpStream::connect(self.address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        let reader = BufReader::with_capacity(256 * 1024, stream.try_clone()?);
        Ok(Lane { stream, reader, line: Vec::new() })
    }

    /// Puts `count` jobs, a thousand per write, over two connections.
    pub(crate) fn put_pipelined(&self, count: usize) -> anyhow::Result<f64> {
        let many = put(0).repeat(PIPELINE);
        let rounds = count / PIPELINE / THREADS;
        self.timed(rounds * PIPELINE * THREADS, 1, |lanes| {
            for _ in 0..rounds {
                let lane = &mut lanes[0];
                lane.stream.write_all(&many)?;
                (0..PIPELINE).try_for_each(|_| lane.expect(b"INSERTED"))?;
            }
            Ok(())
        })
    }

    /// Puts `count` jobs, one per request, over `connections` connections.
    pub(crate) fn put_single(&self, count: usize, connections: usize) -> anyhow::Result<f64> {
        let one = put(0);
        let rounds = count / connections;
        self.timed(rounds * connections, connections / THREADS, |lanes| {
            for _ in 0..rounds {
                lanes.iter_mut().try_for_each(|lane| lane.stream.write_all(&one))?;
                lanes.iter_mut().try_for_each(|lane| lane.expect(b"INSERTED"))?;
            }
            Ok(())
        })
    }

    /// Reserves and deletes `count` jobs, a thousand per write.
    pub(crate) fn drain_pipelined(&self, count: usize) -> anyhow::Result<f64> {
        let rounds = count / PIPELINE / THREADS;
        let reserves = b"reserve-with-timeout 1\r\n".repeat(PIPELINE);
        self.timed(rounds * PIPELINE * THREADS, 1, |lanes| {
            let lane = &mut lanes[0];
            for _ in 0..rounds {
                lane.stream.write_all(&reserves)?;
                let mut deletes = Vec::new();
                for _ in 0..PIPELINE {
                    let (id, _) = lane.reserved()?;
                    writeln!(deletes, "delete {id}\r")?;
                }
                lane.stream.write_all(&deletes)?;
                (0..PIPELINE).try_for_each(|_| lane.expect(b"DELETED"))?;
            }
            Ok(())
        })
    }

    /// Deletes one job and reserves the next in one write, over `connections` connections.
    pub(crate) fn drain_single(&self, count: usize, connections: usize) -> anyhow::Result<f64> {
        let rounds = count / connections;
        self.timed(rounds * connections, connections / THREADS, |lanes| {
            let mut ids: Vec<Option<u64>> = vec![None; lanes.len()];
            for round in 0..=rounds {
                for (lane, id) in lanes.iter_mut().zip(&ids) {
                    let mut text = Vec::new();
                    if let Some(id) = id {
                        writeln!(text, "delete {id}\r")?;
                    }
                    if round < rounds {
                        text.extend_from_slice(b"reserve-with-timeout 1\r\n");
                    }
                    lane.stream.write_all(&text)?;
                }
                for (lane, id) in lanes.iter_mut().zip(&mut ids) {
                    if id.take().is_some() {
                        lane.expect(b"DELETED")?;
                    }
                    if round < rounds {
                        *id = Some(lane.reserved()?.0);
                    }
                }
            }
            Ok(())
        })
    }

    /// From put to reserve at the usual rate.
    pub(crate) fn latency(&self, span: Duration) -> anyhow::Result<Latency> {
        let clock = Stopwatch::start();
        let mut consumer = self.connect()?;
        let mut producer = self.connect()?;
        let count = (span.as_secs_f64() * f64::from(super::latency::RATE)) as usize;
        let seen = std::thread::scope(|scope| {
            let waiting = scope.spawn(move || -> anyhow::Result<Vec<u64>> {
                let mut seen = Vec::with_capacity(count);
                for _ in 0..count {
                    consumer.stream.write_all(b"reserve\r\n")?;
                    let (id, body) = consumer.reserved()?;
                    let now = clock.nanos();
                    let stamps = super::job::stamps(&body);
                    seen.extend(stamps.iter().map(|stamp| now.saturating_sub(*stamp)));
                    consumer.stream.write_all(format!("delete {id}\r\n").as_bytes())?;
                    consumer.expect(b"DELETED")?;
                }
                Ok(seen)
            });
            at_rate(clock, span, |stamp| {
                producer.stream.write_all(&put(stamp))?;
                producer.expect(b"INSERTED")
            })?;
            waiting.join().map_err(|_| anyhow::anyhow!("the consumer panicked"))?
        })?;
        Ok(Latency::of(seen))
    }

    /// Runs `work` on each thread with `each` connections; answers `count` per second.
    fn timed(
        &self,
        count: usize,
        each: usize,
        work: impl Fn(&mut [Lane]) -> anyhow::Result<()> + Sync,
    ) -> anyhow::Result<f64> {
        let mut lanes = Vec::new();
        for _ in 0..THREADS {
            let mine: anyhow::Result<Vec<Lane>> = (0..each).map(|_| self.connect()).collect();
            lanes.push(mine?);
        }
        let stopwatch = Stopwatch::start();
        std::thread::scope(|scope| {
            let work = &work;
            let running: Vec<_> =
                lanes.into_iter().map(|mut mine| scope.spawn(move || work(&mut mine))).collect();
            for thread in running {
                match thread.join() {
                    Ok(ended) => ended.context("driving beanstalkd")?,
                    Err(_) => bail!("a thread of the load generator panicked"),
                }
            }
            Ok(())
        })?;
        Ok(stopwatch.rate(count))
    }
}

impl Drop for Beanstalkd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn put(stamp: u64) -> Vec<u8> {
    let body = payload(stamp);
    format!("put 50 0 600 {}\r\n{body}\r\n", body.len()).into_bytes()
}

/// One connection.
struct Lane {
    stream: TcpStream,
    reader: BufReader<TcpStream>,
    line: Vec<u8>,
}

impl Lane {
    fn read_line(&mut self) -> anyhow::Result<()> {
        self.line.clear();
        self.reader.read_until(b'\n', &mut self.line).context("no answer")?;
        Ok(())
    }

    fn expect(&mut self, word: &[u8]) -> anyhow::Result<()> {
        self.read_line()?;
        if !self.line.starts_with(word) {
            bail!("beanstalkd said {:?}", String::from_utf8_lossy(&self.line));
        }
        Ok(())
    }

    /// Reads `RESERVED <id> <bytes>` and the body.
    fn reserved(&mut self) -> anyhow::Result<(u64, Vec<u8>)> {
        self.expect(b"RESERVED")?;
        let text = String::from_utf8_lossy(&self.line).into_owned();
        let mut words = text.split_whitespace().skip(1);
        let id = words.next().and_then(|word| word.parse().ok()).context("no id")?;
        let length: usize = words.next().and_then(|word| word.parse().ok()).context("no length")?;
        let mut body = vec![0; length + 2];
        std::io::Read::read_exact(&mut self.reader, &mut body)?;
        Ok((id, body))
    }
}
