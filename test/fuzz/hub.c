/* SPDX-License-Identifier: MIT
 *
 * What a process may say to the hub. First byte: which link begins; then its bytes, until one of
 * 0xfe passes the word to the next link. Holds: no crash; a link that breaks the rules is closed
 * and the others go on; what is kept stays within its limits; an
 * honest process that comes afterwards gets exactly what it wants.
 */
#include "fuzz.h"
#include "pubsub/hub.h"

enum { LINKS = 3, PAYLOAD_MAX = 300, KEPT_BYTES = 20000 };

typedef struct process {
    rd_hub_link link;
    rd_relay_reader reader;
    int is_here;
    uint64_t sent;
} process;

static rd_hub hub;
static process processes[LINKS];

static bool send_to(rd_hub_link *link, const rd_relay_frame *frame, rd_message *message) {
    process *to = RD_CONTAINER(link, process, link);
    char head[RD_RELAY_HEAD_BYTES];

    (void)message;
    FUZZ_CHECK(to->is_here);
    FUZZ_CHECK(rd_relay_head(frame, PAYLOAD_MAX, head) == 0);
    to->sent++;
    return frame->payload.len < PAYLOAD_MAX / 2; /* as if it were full */
}

/* Now and then there is none, and replays wait. */
static size_t room_of(const rd_hub_link *link) {
    const process *to = RD_CONTAINER(link, const process, link);
    return to->sent % 3 == 0 ? 0 : KEPT_BYTES / 4;
}

static void come(process *process, rd_hub_kind kind) {
    process->is_here = 1;
    rd_hub_join(&hub, &process->link, kind);
    rd_relay_reader_init(&process->reader, PAYLOAD_MAX);
}

static void go(process *process) {
    if (!process->is_here) return;
    rd_hub_leave(&hub, &process->link);
    rd_relay_reader_clear(&process->reader);
    process->is_here = 0;
}

static void hear(process *process, const uint8_t *bytes, size_t len) {
    char *copy = fuzz_copy(bytes, len);
    size_t at = 0, used;
    rd_relay_frame frame;
    int rc = 0;

    while (rc == 0 && process->is_here) {
        rc = rd_relay_read(&process->reader, copy + at, len - at, &used, &frame);
        if (rc == 0) break;
        at += used;
        if (rc == 1) rc = rd_hub_receive(&hub, &process->link, &frame);
    }
    if (rc < 0) go(process);
    while (rd_hub_can_answer(&hub)) rd_hub_answer(&hub);
    FUZZ_CHECK(hub.history.bytes <= KEPT_BYTES && hub.history.count <= 100);
    free(copy);
}

/* Everybody hears of it once, at most. */
static void check_that_it_goes_on(void) {
    const rd_relay_frame wish = {.type = RD_RELAY_SUBSCRIBE, .channel = RD_SLICE("ok")};
    const rd_relay_frame message = {.type = RD_RELAY_PUBLISH, .channel = RD_SLICE("ok")};
    process *honest = &processes[0];

    go(honest);
    come(honest, RD_HUB_WORKER);
    FUZZ_CHECK(rd_hub_receive(&hub, &honest->link, &wish) == 0);
    for (int i = 0; i < LINKS; i++) processes[i].sent = 0;
    rd_hub_publish(&hub, &message);
    FUZZ_CHECK(honest->sent == 1);
    for (int i = 0; i < LINKS; i++) FUZZ_CHECK(processes[i].sent <= 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len) {
    if (len < 2 || len > 16384) return 0;
    rd_hub_init(&hub, send_to, room_of, (rd_history_limits){100, KEPT_BYTES}, 0);
    for (int i = 0; i < LINKS; i++) come(&processes[i], i == 2 ? RD_HUB_ENGINE : RD_HUB_WORKER);
    unsigned speaker = bytes[0] % LINKS;
    for (size_t at = 1; at < len;) {
        const uint8_t *end = memchr(bytes + at, 0xfe, len - at);
        const size_t part = end == NULL ? len - at : (size_t)(end - bytes) - at;
        hear(&processes[speaker++ % LINKS], bytes + at, part);
        hub.now_ms++;
        at += part + 1;
    }
    check_that_it_goes_on();
    for (int i = 0; i < LINKS; i++) go(&processes[i]);
    FUZZ_CHECK(hub.names.count == 0 && hub.patterns.count == 0);
    rd_hub_clear(&hub);
    return 0;
}
