//! What submits the shards of a plan to a cluster's own engine.

use super::Sharded;
use crate::{
    arguments::{Engine, Plan as Arguments},
    output::quoted,
};
use incast_lab::run::{Plan, RunError};
use std::{
    fmt::Write,
    fs,
    path::{Component, Path, PathBuf},
};

/// A file to submit.
pub struct Script {
    /// Its name.
    pub name: &'static str,
    /// The command that submits it.
    pub submit: &'static str,
    /// Its content.
    pub text: String,
}

/// Memory of a program that simulates nothing, in bytes.
const BASE_MEMORY: u64 = 64 << 20;
/// Limits of memory and time are so many times what is expected: cores differ, and estimates are off.
const SPARE_MEMORY: f64 = 1.5;
const SPARE_TIME: f64 = 4.0;
/// Least limit of time, in seconds: the start of a job on a busy cluster.
const LEAST_TIME: f64 = 600.0;
/// A shard is tried so many times.
const TRIES: u32 = 3;

/// What a shard needs.
struct Needs {
    cores: usize,
    memory_mib: u64,
    limit_mib: u64,
    seconds: u64,
}

impl Needs {
    fn new(sharded: &Sharded, plans: &[(String, Plan)], arguments: &Arguments) -> Self {
        let (jobs, threads) = (arguments.jobs.get(), arguments.threads.get());
        let (shard, run) = sharded.largest();
        let runs = plans.iter().flat_map(|(_, plan)| &plan.runs);
        let memory = runs.map(|run| run.memory(threads).total()).max().unwrap_or(0);
        let memory = BASE_MEMORY + memory * jobs as u64;
        let mib = |bytes: f64| (bytes / f64::from(1 << 20)).ceil() as u64;
        Self {
            cores: jobs * threads,
            memory_mib: mib(memory as f64),
            limit_mib: mib(memory as f64 * SPARE_MEMORY),
            seconds: (LEAST_TIME + SPARE_TIME * run.max(shard / jobs as f64)).ceil() as u64,
        }
    }
}

/// # Errors
/// A file that Kubernetes could not hand to a shard.
pub fn script(
    engine: Engine,
    sharded: &Sharded,
    plans: &[(String, Plan)],
    arguments: &Arguments,
) -> Result<Script, RunError> {
    let needs = Needs::new(sharded, plans, arguments);
    let title = plans.iter().map(|(_, plan)| plan.scenario.name.as_str()).collect::<Vec<_>>().join("-");
    Ok(match engine {
        Engine::Slurm => Script { name: "slurm.sh", submit: "sbatch", text: slurm(sharded, &needs, &title, arguments) },
        Engine::Kubernetes => Script {
            name: "kubernetes.yaml",
            submit: "kubectl create -f",
            text: kubernetes(sharded, &needs, &title, plans, arguments)?,
        },
    })
}

/// The command of a shard: `incast run`, with the scenarios where they are for it.
fn command(scenarios: &[PathBuf], shard: &str, out: &Path, sharded: &Sharded, arguments: &Arguments) -> String {
    let selection = &sharded.selection;
    let mut words = vec!["incast".to_owned(), "run".to_owned()];
    words.extend(scenarios.iter().map(|file| file.display().to_string()));
    words.extend(selection.set.iter().map(|(key, value)| format!("--set={key}={value}")));
    words.extend(selection.only.iter().map(|only| format!("--only={only}")));
    words.extend(selection.seeds.map(|seeds| format!("--seeds={seeds}")));
    words.extend(selection.short.then(|| "--short".to_owned()));
    words.push(format!("--jobs={}", arguments.jobs));
    words.push(format!("--threads={}", arguments.threads));
    words.push(format!("--out={}", out.display()));
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    format!("{} --quiet --shard \"{shard}/{}\"", words.join(" "), sharded.shards)
}

/// Tries a command until it goes well or the input is at fault.
fn tried(command: &str, indent: &str) -> String {
    [
        format!("for attempt in $(seq {TRIES}); do"),
        format!("    {command} && exit 0"),
        "    code=$?".to_owned(),
        "    # Bad input does not get better.".to_owned(),
        "    [ \"$code\" -ne 2 ] || break".to_owned(),
        "done".to_owned(),
        "exit \"$code\"".to_owned(),
    ]
    .map(|line| format!("{indent}{line}\n"))
    .concat()
}

fn slurm(sharded: &Sharded, needs: &Needs, title: &str, arguments: &Arguments) -> String {
    let out = fs::canonicalize(&arguments.out).unwrap_or_else(|_| absolute(&arguments.out));
    let (hours, minutes) = (needs.seconds / 3600, needs.seconds % 3600 / 60);
    let seconds = needs.seconds % 60;
    let command = command(&sharded.selection.scenarios, "${SLURM_ARRAY_TASK_ID}", &out, sharded, arguments);
    let mut text = format!(
        "#!/bin/bash\n\
         # Written by incast plan: a shard for each task. Finished runs are kept, so that a task may run again.\n\
         #SBATCH --job-name={}\n\
         #SBATCH --array=1-{}\n\
         #SBATCH --cpus-per-task={}\n\
         #SBATCH --mem={}M\n\
         #SBATCH --time={hours:02}:{minutes:02}:{seconds:02}\n\
         #SBATCH --requeue\n\
         #SBATCH --open-mode=append\n\
         #SBATCH --output={}\n\n\
         code=1\n",
        quoted(&format!("incast-{title}")),
        sharded.shards,
        needs.cores,
        needs.limit_mib,
        quoted(&out.join("slurm-%A_%a.log").display().to_string()),
    );
    text.push_str(&tried(&command, ""));
    text
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// A name of an object: RFC 1123, at most 63 letters, of which a Job's pods need some.
fn object_name(title: &str) -> String {
    let mut name: String = format!("incast-{}", title.to_lowercase())
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .take(50)
        .collect();
    name.truncate(name.trim_end_matches('-').len());
    name
}

/// The folder of the files of a ConfigMap in a shard's container, and that of the results.
const INPUT: &str = "/scenario";
const RESULTS: &str = "/results";
/// Most bytes that a ConfigMap holds.
const MOST_BYTES: usize = 1 << 20;

/// What a shard's container needs.
#[derive(Default)]
struct Inputs {
    /// Scenarios as its command names them.
    scenarios: Vec<PathBuf>,
    /// Paths below `INPUT`, and contents: scenarios, and the files that these name.
    files: Vec<(String, String)>,
}

/// # Errors
/// A file does not fit into a ConfigMap.
fn inputs(plans: &[(String, Plan)], sharded: &Sharded) -> Result<Inputs, RunError> {
    let Inputs { mut scenarios, mut files } = Inputs::default();
    let refuse = |file: &Path, why: &str| {
        let message = format!("{why}, so that a ConfigMap cannot hold it: copy it into the image, with the scenario");
        RunError::Plan { found: file.display().to_string(), message }
    };
    let all = plans.iter().zip(&sharded.selection.scenarios).enumerate();
    for (place, ((_, plan), given)) in all {
        if !given.is_absolute() {
            // The name of a bundled one.
            scenarios.push(given.clone());
            continue;
        }
        let name = given.file_name().unwrap_or_default().to_string_lossy().into_owned();
        scenarios.push(Path::new(INPUT).join(format!("{place}")).join(&name));
        files.push((format!("{place}/{name}"), plan.scenario.file.text.clone()));
        for (name, path) in plan.scenario.files() {
            let below = Path::new(&name).components().all(|part| matches!(part, Component::Normal(_)));
            if !below {
                return Err(refuse(&path, "it is not below the scenario's folder"));
            }
            let bytes = fs::read(&path).map_err(|source| RunError::Files { path: path.clone(), source })?;
            let text = String::from_utf8(bytes).map_err(|_| refuse(&path, "it is not text"))?;
            let place = format!("{place}/{name}");
            if !files.iter().any(|(there, _)| *there == place) {
                files.push((place, text));
            }
        }
        if files.iter().map(|(_, text)| text.len()).sum::<usize>() > MOST_BYTES {
            return Err(refuse(given, "it and the files that it names have more than 1 MiB"));
        }
    }
    Ok(Inputs { scenarios, files })
}

fn kubernetes(
    sharded: &Sharded,
    needs: &Needs,
    title: &str,
    plans: &[(String, Plan)],
    arguments: &Arguments,
) -> Result<String, RunError> {
    let Inputs { scenarios, files } = inputs(plans, sharded)?;
    let name = object_name(title);
    let command = command(&scenarios, "$((JOB_COMPLETION_INDEX + 1))", Path::new(RESULTS), sharded, arguments);
    // JSON texts are YAML texts.
    let text = |text: &str| serde_json::Value::from(text).to_string();
    let mut yaml = String::from(
        "# Written by incast plan: a shard for each index. Finished runs are kept, so that an index may run again.\n\
         # To change: the image, which Containerfile makes, and the claim of a volume that all nodes can write to.\n",
    );
    if !files.is_empty() {
        let _ = writeln!(yaml, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:");
        for (key, (_, content)) in files.iter().enumerate() {
            let _ = writeln!(yaml, "  file-{key}: {}", text(content));
        }
        yaml.push_str("---\n");
    }
    let shards = sharded.shards;
    let Needs { cores, memory_mib, limit_mib, seconds } = needs;
    let _ = write!(
        yaml,
        "apiVersion: batch/v1
kind: Job
metadata:
  name: {name}
spec:
  completionMode: Indexed
  completions: {shards}
  parallelism: {shards}
  # A week later the Job and its pods are removed; results stay.
  ttlSecondsAfterFinished: 604800
  backoffLimitPerIndex: {retries}
  maxFailedIndexes: {shards}
  podFailurePolicy:
    rules:
      # Bad input does not get better.
      - action: FailIndex
        onExitCodes: {{containerName: incast, operator: In, values: [2]}}
      # A drained node is no failure.
      - action: Ignore
        onPodConditions: [{{type: DisruptionTarget, status: \"True\"}}]
  template:
    spec:
      restartPolicy: Never
      # Pod Security Standard \"restricted\". To change: who may write to the claim.
      securityContext: {{runAsNonRoot: true, runAsUser: 1000, runAsGroup: 1000, fsGroup: 1000, seccompProfile: {{type: RuntimeDefault}}}}
      containers:
        - name: incast
          image: {image}
          command: [sh, -c, {shell}]
          securityContext: {{allowPrivilegeEscalation: false, capabilities: {{drop: [ALL]}}}}
          resources:
            requests: {{cpu: {cores}, memory: {memory_mib}Mi}}
            limits: {{memory: {limit_mib}Mi}}
          volumeMounts:
            - {{name: results, mountPath: {RESULTS}}}
",
        retries = TRIES - 1,
        image = text(&format!("incast:{}", incast_lab::VERSION.replace('+', "-"))),
        shell = text(&format!("exec {command}")),
    );
    if !files.is_empty() {
        let _ = writeln!(yaml, "            - {{name: scenario, mountPath: {INPUT}, readOnly: true}}");
    }
    let _ = writeln!(
        yaml,
        "      activeDeadlineSeconds: {seconds}
      volumes:
        - name: results
          persistentVolumeClaim: {{claimName: incast-results}}"
    );
    if !files.is_empty() {
        let _ = writeln!(
            yaml,
            "        - name: scenario\n          configMap:\n            name: {name}\n            items:"
        );
        for (key, (path, _)) in files.iter().enumerate() {
            let _ = writeln!(yaml, "              - {{key: file-{key}, path: {}}}", text(path));
        }
    }
    Ok(yaml)
}
