//! `loadline serve`: rows that collectors elsewhere send are kept in the store here.

use std::sync::Arc;

use loadline_ingest::collect::{Health, Stop, inbox, run_with};
use loadline_ingest::wal::Wal;

use super::collect::{moves, stop_on_signal, wal_folder};
use super::{Context, print};
use crate::cli::ServeArgs;
use crate::failure::Failure;
use crate::report::plural;
use crate::serve::{CollectDesk, Door, DoorSettings, Flight, FlightDesk, FlightSettings};

pub(super) async fn run(context: &Context, args: &ServeArgs) -> Result<(), Failure> {
    let (store, config) = (context.store()?, context.config()?);
    let settings = FlightSettings {
        listen: args.listen.clone(),
        token_file: args.token_file.clone(),
        tls: args.tls_cert.clone().zip(args.tls_key.clone()),
        insecure: args.insecure,
    };
    let flight = Flight::open(&settings)?;
    let door = args.health.as_ref().map(|listen| {
        Door::open(&DoorSettings { listen: listen.clone(), ..DoorSettings::default() })
    });
    let door = door.transpose()?;
    let wal = Wal::open(&wal_folder(&store), &args.name, config.collect.wal_settings())?;
    let health = Arc::new(Health::new(Box::new(print::aside)));
    let stop = Stop::default();
    let (sender, work) = inbox();
    print::aside(&format!("taking rows on {}", flight.url()));
    if flight.in_the_open() {
        print::aside("rows and token are not encrypted: give --tls-cert and --tls-key");
    }
    if let Some(door) = &door {
        print::aside(&format!("listening on http://{}", door.address()));
    }
    stop_on_signal(&stop, args.lasting)?;
    let desk = FlightDesk::new(sender.clone(), Arc::clone(&health), flight.token());
    let page = CollectDesk {
        receiver: None,
        sender,
        health: Arc::clone(&health),
        bearer_token_file: None,
    };
    let kept = {
        let (health, stop, settings) =
            (Arc::clone(&health), stop.clone(), config.collect.settings());
        tokio::task::spawn_blocking(move || {
            std::thread::scope(|scope| {
                if let Some(door) = &door {
                    let (page, stop) = (&page, &stop);
                    scope.spawn(move || door.serve(&|request| page.answer(request), stop));
                }
                let done = run_with(Vec::new(), work, wal, &store, &settings, &health, &stop);
                stop.set();
                done
            })
        })
    };
    let served = flight.serve(desk, &stop).await;
    stop.set();
    let kept = kept.await.map_err(|error| Failure::from_error(&error))?;
    let writer = health.writer();
    let (kept_rows, repeated) = (writer.rows_appended_total, writer.rows_repeated_total);
    let came = match (kept_rows, repeated) {
        (0, 0) => "no rows came".to_owned(),
        _ => format!("{} kept, {repeated} had come before", plural(kept_rows, "row")),
    };
    print::aside(&format!("{came}, {}", moves(writer.flushes_total)));
    served?;
    Ok(kept?)
}
