/* A libnvidia-ml.so.1 without a driver: eight devices of a kind whose state a test writes.
 *
 * Only what bough asks for is here; all else is a function that is not found, as in an old driver.
 * Names, numbers and the layout of structures are those of NVIDIA's public interface.
 */
#include <string.h>

#define DEVICES 8
#define PROCESSES 4
#define EVENTS 16

enum { SUCCESS = 0, NOT_SUPPORTED = 3, INSUFFICIENT_SIZE = 7, TIMEOUT = 10 };

typedef struct {
    unsigned int pid;
    unsigned long long used;
    unsigned int gpu_instance, compute_instance;
} Process;
typedef struct {
    char legacy_id[16];
    unsigned int domain, bus, device, id, subsystem;
    char id_text[32];
} Pci;
typedef struct { unsigned long long total, free, used; } Memory;
typedef struct { unsigned int version; unsigned long long total, reserved, free, used; } Memory2;
typedef struct {
    unsigned int field, scope;
    long long timestamp, latency;
    unsigned int type, result;
    union { double real; unsigned int number; unsigned long long large; } value;
} Field;
typedef struct {
    int *device;
    unsigned long long type, data;
    unsigned int gpu_instance, compute_instance;
} Event;

/* What a test may write, in_dll. */
int count = DEVICES;
int init_fails, memory_is_old, links_are_unknown;
int fails[DEVICES];        /* the error of each call about a device */
int has_no_handle[DEVICES];
int island[DEVICES];       /* equal, and not 0: they have NVLink to each other */
int apart[DEVICES];        /* this one and its neighbour have no link all the same */
int divided[DEVICES], pending[DEVICES], unmappable[DEVICES], retiring[DEVICES];
unsigned long long errors[DEVICES], used[DEVICES];
unsigned long long millijoules[DEVICES];
unsigned int milliwatts[DEVICES], celsius[DEVICES], busy[DEVICES];
Process computing[DEVICES][PROCESSES], sharing[DEVICES][PROCESSES], drawing[DEVICES][PROCESSES];
int reported_of[EVENTS];
unsigned long long reported[EVENTS];
int reports, registered, energy_asked;
char model[64] = "NVIDIA H100 80GB HBM3";

static const unsigned long long total = 85520809984ULL;
static int numbers[DEVICES] = {0, 1, 2, 3, 4, 5, 6, 7};

#define OF(device) if (fails[*(device)]) return fails[*(device)]

int nvmlInitWithFlags(unsigned int flags) { (void)flags; return init_fails; }
const char *nvmlErrorString(int error) {
    return error == 15 ? "GPU is lost" : error == 16 ? "GPU requires reset" : "Unknown Error";
}
int nvmlSystemGetDriverVersion(char *text, unsigned int size) {
    strncpy(text, "550.54.15", size); return SUCCESS;
}
int nvmlSystemGetCudaDriverVersion(int *version) { *version = 12040; return SUCCESS; }
int nvmlDeviceGetCount_v2(unsigned int *found) { *found = count; return SUCCESS; }
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, int **device) {
    if (has_no_handle[index]) return has_no_handle[index];
    *device = &numbers[index]; return SUCCESS;
}
int nvmlDeviceGetIndex(int *device, unsigned int *index) {
    OF(device); *index = *device; return SUCCESS;
}
int nvmlDeviceGetName(int *device, char *text, unsigned int size) {
    OF(device); strncpy(text, model, size); return SUCCESS;
}
int nvmlDeviceGetUUID(int *device, char *text, unsigned int size) {
    OF(device);
    strncpy(text, "GPU-00000000-0000-4000-8000-000000000000", size);
    text[39] = '0' + *device; return SUCCESS;
}
int nvmlDeviceGetPciInfo_v3(int *device, Pci *pci) {
    OF(device);
    strcpy(pci->id_text, "00000000:1A:00.0");
    pci->id_text[9] = '1' + *device; return SUCCESS;
}
int nvmlDeviceGetP2PStatus(int *a, int *b, int index, int *status) {
    OF(a); OF(b);
    int neighbours = *b == *a + 1 && apart[*a];
    *status = index == 2 && island[*a] && island[*a] == island[*b] && !neighbours ? 0 : 5;
    return SUCCESS;
}
int nvmlDeviceGetMaxPcieLinkGeneration(int *device, unsigned int *found) {
    OF(device); *found = 5; return SUCCESS;
}
int nvmlDeviceGetMaxPcieLinkWidth(int *device, unsigned int *found) {
    OF(device); *found = 16; return SUCCESS;
}
int nvmlDeviceGetFieldValues(int *device, int length, Field *fields) {
    OF(device);
    for (int i = 0; i < length; i++) {
        fields[i].result = links_are_unknown ? NOT_SUPPORTED : SUCCESS;
        fields[i].value.number = fields[i].field == 91 ? 18 : 26562;
    }
    return SUCCESS;
}
int nvmlDeviceGetMigMode(int *device, unsigned int *now, unsigned int *next) {
    OF(device); *now = *next = divided[*device]; return SUCCESS;
}
int nvmlDeviceGetMemoryInfo(int *device, Memory *memory) {
    OF(device);
    memory->total = total; memory->used = used[*device] + (600ULL << 20); return SUCCESS;
}
int nvmlDeviceGetMemoryInfo_v2(int *device, Memory2 *memory) {
    OF(device);
    if (memory_is_old) return NOT_SUPPORTED;
    memory->total = total; memory->used = used[*device]; return SUCCESS;
}
int nvmlDeviceGetPowerUsage(int *device, unsigned int *found) {
    OF(device); *found = milliwatts[*device]; return SUCCESS;
}
int nvmlDeviceGetTotalEnergyConsumption(int *device, unsigned long long *found) {
    OF(device); energy_asked++; *found = millijoules[*device]; return SUCCESS;
}
int nvmlDeviceGetTemperature(int *device, int sensor, unsigned int *found) {
    (void)sensor; OF(device); *found = celsius[*device]; return SUCCESS;
}
int nvmlDeviceGetUtilizationRates(int *device, unsigned int *rates) {
    OF(device); rates[0] = busy[*device]; rates[1] = 0; return SUCCESS;
}
static int processes(Process *known, unsigned int *length, Process *found) {
    unsigned int there = 0, room = *length;
    while (there < PROCESSES && known[there].pid) there++;
    *length = there;
    if (there > room) return INSUFFICIENT_SIZE;
    if (there) memcpy(found, known, there * sizeof(Process));
    return SUCCESS;
}
int nvmlDeviceGetComputeRunningProcesses_v3(int *device, unsigned int *length, Process *found) {
    OF(device); return processes(computing[*device], length, found);
}
int nvmlDeviceGetMPSComputeRunningProcesses_v3(int *device, unsigned int *length, Process *found) {
    OF(device); return processes(sharing[*device], length, found);
}
int nvmlDeviceGetGraphicsRunningProcesses_v3(int *device, unsigned int *length, Process *found) {
    OF(device); return processes(drawing[*device], length, found);
}
int nvmlDeviceGetTotalEccErrors(int *device, int type, int counter, unsigned long long *found) {
    OF(device);
    *found = type == 1 && counter == 0 ? errors[*device] : 7; return SUCCESS;
}
int nvmlDeviceGetRemappedRows(int *device, unsigned int *corrected, unsigned int *uncorrected,
                              unsigned int *waiting, unsigned int *failed) {
    OF(device);
    *corrected = *uncorrected = 0; *waiting = pending[*device]; *failed = unmappable[*device];
    return SUCCESS;
}
int nvmlDeviceGetRetiredPagesPendingStatus(int *device, int *waiting) {
    OF(device); *waiting = retiring[*device]; return SUCCESS;
}
int nvmlEventSetCreate(void **set) { *set = &reports; return SUCCESS; }
int nvmlDeviceRegisterEvents(int *device, unsigned long long types, void *set) {
    (void)set; OF(device); registered += types == 8; return SUCCESS;
}
int nvmlEventSetWait_v2(void *set, Event *event, unsigned int milliseconds) {
    (void)set; (void)milliseconds;
    if (!reports) return TIMEOUT;
    memset(event, 0, sizeof *event);
    event->device = &numbers[reported_of[0]]; event->type = 8; event->data = reported[0];
    reports--;
    memmove(reported, reported + 1, reports * sizeof *reported);
    memmove(reported_of, reported_of + 1, reports * sizeof *reported_of);
    return SUCCESS;
}
