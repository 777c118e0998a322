"""Traces of every format in a few rows of ours, and what is needed to read them."""

from __future__ import annotations

from pathlib import Path

from bough.sim.trace import Reading, Trace, read_trace

ELASTICFLOW = """\
job_id,submit_time,iteration,model_name,ddl,batch_size,num_gpu,duration,best_effort
7,100,2000,BERT,900,64,4,500,0
8,50,10,vgg16,0,128,1,20,1
"""
ITP = """\
job_id,submission_time,num_iteration,model_name,deadline,batch_size,num_gpu,duration
a-b,100,2000,bert,900,64,4,500
"""
MURI = """\
job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,iteration_time
0,8,201694001,9,dqn,128,4472936007,46122000,490
"""
TIRESIAS = """\
job_id,num_gpu,submit_time,iterations,model_name,duration,interval
1,8,30,133,vgg11,147,23
"""
CHRONUS = """\
job_id,user,num_gpu,submit_time,iterations,model_name,duration,interval,expect_time_list,expect_value_list,best_effort,job_type
0,vc_1,1,10,5049,vgg16,7,14,15,10,0,strict
1,vc_2,2,11,296,vgg16,9,8,20-40,10-5,0,soft
2,vc_2,2,12,296,vgg16,9,8,99,10,1,best
3,vc_2,0,12,296,vgg16,9,8,99,10,1,best
"""
SHOCKWAVE = (
    "LM (batch size 10)\tpython3 main.py\tlm\t--steps\t1\t1345\t1\tgns\t1\t-1.000000\t1418\t0\n"
    "CycleGAN\tpython3 main.py\tgan\t--n_steps\t1\t90\t2\tstatic\t1\t600\t200\t55\n"
)
GAVEL = (
    "ResNet-50 (batch size 64)\tpython3 main.py\timagenet\t--n\t1\t3000\t2\t1\t-1.000000\t5\n"
    "Transformer (batch size 16)\tpython3 train.py\t-step\t1\t500\t1\t1\t-1.000000\t6\n"
    "Transformer (batch size 16)\tpython3 train.py\t-step\t1\t500\t7\t1\n"
)
POLLUX = """\
name,time,application,num_replicas,batch_size
cifar10-0,107,cifar10,2,64
"""
PHILLY_TABLE = """\
timestamp,duration,num_gpus,gpu_time,cluster
2017-10-09 07:01:55,66.0,1,66.0,11cb48
2017-10-09 06:13:03,2951.5,8,23612.0,6214e9
"""
HELIOS = """\
job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue
11,uX,vcA,1,1,1,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:41:01,2020-06-10 04:55:09,36848,0
12,uV,vcB,4,16,1,FAILED,2020-06-09 18:41:27,2020-06-09 18:41:27,2020-06-09 18:45:36,249,0
13,uV,vcB,0,16,1,COMPLETED,2020-06-09 18:41:28,2020-06-09 18:41:28,2020-06-09 18:45:36,249,0
"""
LUCID = """\
job_id,user,vc,jobname,gpu_num,cpu_num,state,submit_time,duration,dataset,model,batchsize,amp
5,u,vc,train,2,8,COMPLETED,3600,120,CIFAR10,ResNet18,64,1
"""
OPENB = """\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
p1,12000,16384,1,460,,LS,Running,10,110,20
p2,88000,327680,8,1000,V100M16|V100M32,BE,Failed,30,130,30
p3,8000,30517,0,0,,BE,Running,40,140,40
p4,8000,30517,1,1000,,LS,Pending,50,150,
"""
PAI_JOBS = """\
j1,i1,alice,Terminated,100.0,900.0
j2,i2,bob,Failed,200.0,
"""
PAI_TASKS = """\
j1,ps,2.0,Terminated,150.0,800.0,600.0,29.3,,MISC
j1,worker,3.0,Failed,160.0,900.0,600.0,29.3,150.0,V100
j2,worker,1.0,Failed,300.0,,600.0,29.3,50.0,T4
"""
PAI_SIMULATOR = """\
job_id,num_gpu,num_cpu,submit_time,num_inst,duration,user
9,0.5,6,77,4,300,carol
"""
GAIA = """\
arrival_time,length,cpus
0.0,25.5,1
0.25,1.0,12
"""
SACCT = """\
JobID|User|Partition|State|Submit|Start|End|Elapsed|AllocTRES|ReqTRES
17|ann|gpu|COMPLETED|2024-01-02T03:04:05|2024-01-02T04:00:00|2024-01-03T05:00:01|1-01:00:01|billing=9,gres/gpu:a100=4,gres/gpu=4,node=1|
17.batch||gpu|COMPLETED|2024-01-02T03:04:05|2024-01-02T04:00:00|2024-01-03T05:00:01|1-01:00:01|gres/gpu=4|
18_3|bob|gpu|CANCELLED by 1000|2024-01-02T03:05:05|Unknown|Unknown|00:00:00||gres/gpu=2
19_7|bob|gpu|OUT_OF_MEMORY|2024-01-02T03:06:05|2024-01-02T03:06:05|2024-01-02T03:16:05|10:00||gres/gpu:h100=2,gres/gpu:t4=1
20|bob|gpu|RUNNING|2024-01-02T03:07:05|2024-01-02T03:07:05|Unknown|10:00|gres/gpu=2|
21|bob|cpu|COMPLETED|2024-01-02T03:07:05|2024-01-02T03:07:05|2024-01-02T03:17:05|10:00|cpu=2|
"""
SYNERGY = "0,alexnet,8,3000,2\n1,gnmt,126.5,26435,1\n"

OWN = """\
{"bough_trace": 1, "name": "mine", "kind": "a100", "curves": {"c": {"sizes": [1, 2], "speed": [1, 1.5]}}}
{"id": "1", "submit": 5, "seconds": 60, "devices": 2, "curve": "c", "spec": {"name": "x"}}
{"id": "2", "submit": 1, "seconds": 60, "devices": 2, "fails_at": 0.5, "spec": {"name": "x", "devices": {"min": 2, "max": 4}}}
"""  # noqa: E501 - a job is a line

#: By the name of the format.
SAMPLES = {
    "bough": OWN,
    "elasticflow": ELASTICFLOW,
    "chronus": CHRONUS,
    "muri": MURI,
    "gavel": GAVEL,
    "pollux": POLLUX,
    "philly": PHILLY_TABLE,
    "helios": HELIOS,
    "pai": PAI_TASKS,
    "openb": OPENB,
    "sacct": SACCT,
    "synergy": SYNERGY,
}


class Rates:
    """Two iterations a second on each device, but never on more than 16."""

    def rate(self, model: str, batch: int, kind: str, size: int) -> float | None:
        return 2.0 * size if size <= 16 else None


def read(folder: Path, text: str, **reading: object) -> Trace:
    path = folder / "trace"
    path.write_text(text, encoding="utf-8")
    return read_trace(path, Reading(**reading))  # type: ignore[arg-type]


def profile(folder: Path) -> Path:
    """An application with steps of 1 s and epochs of 1,000 units of 32 samples."""
    application = folder / "cifar10"
    application.mkdir()
    places = "placement,local_bsz,step_time,sync_time\n"
    places += "".join(f"{p},{b},{1 + b / 64},0.5\n" for p in (1, 2) for b in (16, 64))
    (application / "placements.csv").write_text(places)
    for batch in (32, 64):
        rows = [f"{1000 * (e + 1)},{1000 * (e + 1)},0.5,1.0,3.0\n" for e in range(3)]
        text = "progress,iteration,metric,grad_sqr,grad_var\n" + "".join(rows)
        (application / f"validation-{batch}.csv").write_text(text)
    return folder
