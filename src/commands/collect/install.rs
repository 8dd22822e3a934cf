//! `loadline collect install`: a systemd unit of what was asked for.

use std::path::{Path, PathBuf};

use super::super::{Context, print};
use crate::cli::{CollectArgs, InstallArgs};
use crate::config::{self, CollectConfig};
use crate::failure::Failure;

/// Name of the unit.
const UNIT: &str = "loadline-collect.service";

/// The store where none is named, which is then in the unit's own folder.
const STORE: &str = "loadline-data";

pub(super) fn run(
    context: &Context,
    args: &CollectArgs,
    install: &InstallArgs,
) -> Result<(), Failure> {
    // What the unit would stumble over is told now.
    let asked = super::asked(&context.config()?.collect, args)?;
    super::checked(&asked)?;
    let temporary = temporary(context, args, &asked)?;
    let text =
        unit(&command(context, args)?, &install.user, &own_folders(context, args)?, &temporary);
    if let Some(first) = temporary.first() {
        print::aside(&format!(
            "`{first}` is in a folder for temporary files: it may be gone after a restart of this \
             machine, and the unit gets no such folder of its own (`PrivateTmp=`)"
        ));
    }
    if !install.write {
        return print::line(text.trim_end());
    }
    let path = install.unit_dir.join(UNIT);
    let there = std::fs::read_to_string(&path).ok();
    if there.as_ref() == Some(&text) {
        print::aside(&format!("`{}` is there already, as it would be", path.display()));
        return Ok(());
    }
    if there.is_some() && !install.force {
        return Err(Failure::new(format!("`{}` is there and differs", path.display()))
            .hint("look at it, and replace it with --force"));
    }
    write(&path, &text).map_err(|error| {
        Failure::new(format!("could not write `{}`: {error}", path.display()))
            .hint("write it as root, or name another folder with --unit-dir")
    })?;
    print::aside(&format!("wrote `{}`; to begin:", path.display()));
    print::line("systemctl daemon-reload")?;
    print::line(&format!("systemctl enable --now {UNIT}"))
}

/// Whole or not at all.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let draft = path.with_extension("service.new");
    std::fs::write(&draft, text)?;
    std::fs::rename(&draft, path)
}

/// The words of the command, every path from the root.
fn command(context: &Context, args: &CollectArgs) -> Result<Vec<String>, Failure> {
    let mut words = vec![whole(&std::env::current_exe()?)?];
    let mut add = |option: &str, value: Option<String>| {
        words.push(option.to_owned());
        words.extend(value);
    };
    if context.store != STORE {
        let place = match context.store.contains("://") {
            true => context.store.clone(),
            false => whole(Path::new(&context.store))?,
        };
        add("--store", Some(place));
    }
    if let Some(config) = context.config.clone().or_else(found) {
        add("--config", Some(whole(&config)?));
    }
    add("collect", None);
    for (option, asked) in
        [("--nvml", args.nvml), ("--node-samples", args.node_samples), ("--slurm", args.slurm)]
    {
        if asked {
            add(option, None);
        }
    }
    for target in &args.scrape {
        add("--scrape", Some(target.clone()));
    }
    for (option, path) in [
        ("--watch", &args.watch),
        ("--token-file", &args.token_file),
        ("--ca-file", &args.ca_file),
        ("--spool", &args.spool),
    ] {
        if let Some(path) = path {
            add(option, Some(whole(path)?));
        }
    }
    let texts = [
        ("--listen", args.listen.clone()),
        ("--interval", args.interval.map(|seconds| format!("{}ms", (seconds * 1e3).round()))),
        ("--name", args.name.clone()),
        ("--cluster", args.cluster.clone()),
        ("--to", args.to.clone()),
    ];
    for (option, text) in texts {
        if let Some(text) = text {
            add(option, Some(text));
        }
    }
    if args.lasting.is_some() {
        return Err(Failure::usage("--for ends a service that systemd would begin again")
            .hint("leave it out"));
    }
    Ok(words)
}

/// Folders beside its own in which the unit writes.
fn own_folders(context: &Context, args: &CollectArgs) -> Result<Vec<String>, Failure> {
    let named = context.store != STORE && !context.store.contains("://") && args.to.is_none();
    let store = named.then(|| PathBuf::from(&context.store));
    store.iter().chain(&args.spool).map(|folder| whole(folder)).collect()
}

/// What the unit reads or writes in folders that `PrivateTmp=` would hide from it.
fn temporary(
    context: &Context,
    args: &CollectArgs,
    asked: &CollectConfig,
) -> Result<Vec<String>, Failure> {
    let mut used = vec![std::env::current_exe()?];
    let here = context.store != STORE && !context.store.contains("://");
    used.extend(here.then(|| PathBuf::from(&context.store)));
    used.extend(context.config.clone().or_else(found));
    used.extend(asked.folder.iter().map(|folder| folder.path.clone()));
    if let Some(ship) = &asked.ship {
        used.extend(args.spool.clone());
        used.extend(Some(ship.spool.clone()).filter(|spool| spool.is_absolute()));
        used.extend(ship.token_file.iter().chain(&ship.ca_file).cloned());
    }
    used.extend(asked.door.iter().filter_map(|door| door.bearer_token_file.clone()));
    let mut found = Vec::new();
    for path in used {
        let path = whole(&path)?;
        if hidden(&path) && !found.contains(&path) {
            found.push(path);
        }
    }
    Ok(found)
}

/// Whether a path is in a folder that `PrivateTmp=` replaces by one of the unit's own.
fn hidden(path: &str) -> bool {
    ["/tmp/", "/var/tmp/"].iter().any(|folder| path.starts_with(folder))
}

/// The configuration that is read where none is named.
fn found() -> Option<PathBuf> {
    Some(PathBuf::from(config::FILE)).filter(|path| path.is_file())
}

fn whole(path: &Path) -> Result<String, Failure> {
    let path = std::path::absolute(path)?;
    path.to_str().map(str::to_owned).ok_or_else(|| {
        Failure::usage(format!("`{}` is no path that a unit can hold", path.display()))
            .hint("unit files are UTF-8: move it")
    })
}

/// A word as systemd reads it back: `%` and `$` mean something, and blanks part words.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,=+@".contains(c);
    let escaped = word.replace('%', "%%").replace('$', "$$");
    match !word.is_empty() && word.chars().all(plain) {
        true => escaped,
        false => format!("\"{}\"", escaped.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}

fn unit(command: &[String], user: &str, folders: &[String], temporary: &[String]) -> String {
    let private = if temporary.is_empty() { "PrivateTmp=yes\n" } else { "" };
    let command: Vec<String> = command.iter().map(|word| quoted(word)).collect();
    let folders: String = folders
        .iter()
        .map(|folder| format!("ReadWritePaths={}\n", quoted(&format!("-{folder}"))))
        .collect();
    format!(
        "[Unit]\n\
         Description=loadline: what the GPUs of this node do\n\
         Wants=network-online.target\n\
         After=network-online.target nvidia-persistenced.service slurmd.service\n\
         \n\
         [Service]\n\
         Type=exec\n\
         ExecStart={command}\n\
         User={user}\n\
         StateDirectory=loadline\n\
         WorkingDirectory=/var/lib/loadline\n\
         Restart=always\n\
         RestartSec=5\n\
         TimeoutStopSec=60\n\
         # Jobs come first.\n\
         Nice=10\n\
         CPUQuota=25%\n\
         MemoryMax=256M\n\
         # What is let go is given back at once.\n\
         Environment=MIMALLOC_PURGE_DELAY=0\n\
         # It reads what others do and writes its own folder.\n\
         NoNewPrivileges=yes\n\
         ProtectSystem=strict\n\
         ProtectHome=read-only\n\
         {private}\
         {folders}\
         \n\
         [Install]\n\
         WantedBy=multi-user.target\n",
        command = command.join(" ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_has_a_folder_for_temporary_files_of_its_own_unless_it_uses_the_one_of_all() {
        // Breaks when the unit cannot see its store, or shares `/tmp` for no reason.
        for (path, wanted) in
            [("/tmp/x", true), ("/var/tmp/x", true), ("/tmpx", false), ("/var/lib/tmp/x", false)]
        {
            assert_eq!(hidden(path), wanted, "{path}");
        }
        let own = |temporary: &[String]| {
            unit(&["a".into()], "root", &[], temporary).contains("\nPrivateTmp=yes\n")
        };
        assert!(own(&[]) && !own(&["/tmp/x".into()]));
    }

    #[test]
    fn words_come_back_from_a_unit_as_they_were() {
        for (word, told) in [
            ("/usr/bin/loadline", "/usr/bin/loadline"),
            ("/srv/my store", "\"/srv/my store\""),
            ("100%", "\"100%%\""),
            ("a\"b\\c$d", "\"a\\\"b\\\\c$$d\""),
            ("", "\"\""),
        ] {
            assert_eq!(quoted(word), told);
        }
    }
}
