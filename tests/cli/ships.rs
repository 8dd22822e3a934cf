//! Many nodes, one store: what is sent is in the store of the server, whatever is killed.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};

use super::fleet::{run_in, words};

const COUNT: &str = "SELECT count(*) AS n, count(DISTINCT sampled_at) AS apart FROM node_samples";

/// A server, its URL, and what else it says.
struct Server(Child, String, BufReader<ChildStderr>);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn serve(folder: &Path, listen: &str) -> Server {
    let mut child = Command::new(env!("CARGO_BIN_EXE_loadline"))
        .args(words(&format!("serve --listen {listen} --token-file token")))
        .current_dir(folder)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    let url = line.trim_end().strip_prefix("taking rows on ").unwrap_or_else(|| panic!("{line}"));
    Server(child, url.to_owned(), said)
}

/// Collects for a while. Rows that were kept here, and the last line.
fn collect(node: &Path, url: &str, seconds: u32) -> (u64, String) {
    let text = format!(
        "collect --node-samples --interval 1s --name n1 --for {seconds}s --to {url} --token-file ../token"
    );
    let run = run_in(node, &words(&text), "");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stderr.contains(&format!("sending to {url}\n")), "{}", run.stderr);
    let last = run.stderr.lines().last().unwrap().to_owned();
    (last.split(' ').next().unwrap().parse().unwrap(), last)
}

#[test]
fn what_a_node_reads_is_in_the_store_of_the_server_once() {
    let folder = tempfile::tempdir().unwrap();
    let node = folder.path().join("node");
    std::fs::create_dir(&node).unwrap();
    std::fs::write(folder.path().join("token"), "abc\n").unwrap();
    let server = serve(folder.path(), "127.0.0.1:0");
    let url = server.1.clone();
    let (mut kept, last) = collect(&node, &url, 3);
    assert!(last.ends_with("sent, 0 lost, 0 bytes in the spool"), "{last}");
    // Killed, and away while the node reads on.
    drop(server);
    let (more, last) = collect(&node, &url, 2);
    assert!(last.contains(" 0 sent, 0 lost, ") && !last.contains(" 0 bytes"), "{last}");
    kept += more;
    let mut server = serve(folder.path(), url.strip_prefix("grpc://").unwrap());
    let (more, last) = collect(&node, &url, 1);
    assert!(last.ends_with("sent, 0 lost, 0 bytes in the spool"), "{last}");
    kept += more;
    assert!(!node.join("loadline-data").exists(), "a node has no store");
    let run = run_in(folder.path(), &["sql", "-f", "csv", COUNT], "");
    assert_eq!(run.stdout, format!("n,apart\n{kept},{kept}\n"), "{}", run.stderr);
    // It ends in good order when it is told to.
    let told = Command::new("kill").arg(server.0.id().to_string()).status().unwrap();
    assert!(told.success());
    let said = (&mut server.2).lines().map(Result::unwrap).last().unwrap();
    assert!(said.ends_with(" had come before, 1 move into the tables"), "{said}");
    assert!(server.0.wait().unwrap().success());
    let run = run_in(folder.path(), &["sql", "-f", "csv", COUNT], "");
    assert_eq!(run.stdout, format!("n,apart\n{kept},{kept}\n"), "{}", run.stderr);
    let doctor = run_in(folder.path(), &["doctor"], "");
    assert_eq!(doctor.code, Some(0), "{}{}", doctor.stdout, doctor.stderr);
}

#[test]
fn a_slip_in_where_rows_go_is_told_before_anything_is_read() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("empty"), "").unwrap();
    let door = "[collect.door]\nlisten = \"127.0.0.1:0\"\nbearer_token_file = \"none\"\n";
    std::fs::write(folder.path().join("door.toml"), door).unwrap();
    for (text, wanted) in [
        ("collect --to store:7047", "give `grpc://HOST:PORT`, or `grpc+tls://HOST:PORT`"),
        ("collect --spool x", "--token-file, --ca-file and --spool are for a server"),
        ("collect --to grpc://a:1 --ca-file Cargo.toml", "a `grpc://` connection has none"),
        ("serve --listen 0.0.0.0:0", "anybody who reaches `0.0.0.0:0` could write to the store"),
        ("serve --token-file token", "no token in `token`, which --token-file names: there is no"),
        ("collect --to grpc://a:1 --token-file token", "no token in `token`, which --token-file"),
        ("collect --to grpc://a:1 --token-file token install", "no token in `token`, which --tok"),
        ("collect --to store:7047 install", "give `grpc://HOST:PORT`"),
        ("collect --name a/b install", "cannot use the name `a/b` for this node"),
        ("collect --name a/b", "cannot use the name `a/b` for this node"),
        ("collect --to grpc+tls://a:1 --ca-file empty", "`empty`: it holds no certificate"),
        ("collect --interval 1", "`1` has no unit: for seconds write `1s`"),
        ("collect --config door.toml", "no token in `none`, which `collect.door.bearer_token"),
        ("serve --tls-cert cert.pem", "--tls-key <FILE>"),
    ] {
        let run = run_in(folder.path(), &words(text), "");
        assert!(matches!(run.code, Some(1 | 2)), "{text}: {}", run.stderr);
        assert!(run.stderr.contains(wanted), "{text}: {}", run.stderr);
    }
}
