/* cc digits.c $(pkg-config --cflags --libs pted) -o digits && ./digits digits.pte
 * Which digit is it? The model takes pictures, float32[n,1,8,8], and gives scores, float32[n,10]. */
#include <pted.h>
#include <stdio.h>
#include <stdlib.h>

static struct pted_error err;

static void check(enum pted_status status)
{
    if (status != PTED_OK) {
        fprintf(stderr, "digits: %s\n", err.text);
        exit(1);
    }
}

int main(int argc, char *argv[])
{
    const int64_t dims[] = {1, 1, 8, 8};
    struct pted_tensor image = {.dtype = PTED_FLOAT32, .rank = 4, .dims = dims}, scores;
    struct pted_device *device;
    struct pted_program *program;
    const struct pted_method *method;
    struct pted_call *call;
    int best = 0;
    check(pted_device_open(NULL, &device, &err)); /* all processors */
    check(pted_program_load(device, argc > 1 ? argv[1] : "digits.pte", NULL, &program, &err));
    check(pted_program_find_method(program, NULL, &method, &err)); /* the only one */
    check(pted_call_new(method, &call, &err));
    check(pted_call_allocate_input(call, 0, &image, &err)); /* memory of the call */
    for (int i = 0; i < 64; i++) {
        ((float *)image.data)[i] = i % 8 == 3 || i % 8 == 4; /* a one is two columns */
    }
    check(pted_call_run(call, &err));
    check(pted_call_output(call, 0, &scores, &err));
    for (int i = 1; i < 10; i++) {
        best = ((float *)scores.data)[i] > ((float *)scores.data)[best] ? i : best;
    }
    printf("%d\n", best);
    pted_call_free(call);
    pted_program_free(program);
    pted_device_free(device);
}
