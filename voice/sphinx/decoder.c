#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>

#include <sphinxbase/err.h>

#include "decoder.h"

/* The destination of the library's error messages; NULL while no function of
 * this file runs. The library calls store_error on the thread of its caller,
 * so each thread has its own destination. */
static __thread reason_t *error_reason;

static void store_error(void *unused, err_lvl_t level, const char *format, ...) {
    va_list args;
    (void)unused;
    if (error_reason == NULL || level < ERR_ERROR)
        return;
    va_start(args, format);
    vsnprintf(error_reason->text, sizeof error_reason->text, format, args);
    va_end(args);
}

decoder_t *open_decoder(int argc, char **argv, reason_t *reason) {
    ps_decoder_t *ps = NULL;
    cmd_ln_t *config;

    err_set_callback(store_error, NULL);
    err_set_logfp(NULL); /* else it writes the list of options to standard error */
    error_reason = reason;
    config = cmd_ln_parse_r(NULL, ps_args(), argc, argv, 1);
    if (config != NULL) {
        ps = ps_init(config);
        cmd_ln_free_r(config);
    }
    error_reason = NULL;
    return ps;
}

void close_decoder(decoder_t *ps) {
    ps_free(ps);
    malloc_trim(0);
}

int add_word(decoder_t *ps, char *word, char *phones, reason_t *reason) {
    int id;
    error_reason = reason;
    id = ps_add_word(ps, word, phones, 0);
    error_reason = NULL;
    return id;
}

int set_grammar(decoder_t *ps, char *name, char *jsgf, reason_t *reason) {
    int failed;
    error_reason = reason;
    failed = ps_set_jsgf_string(ps, name, jsgf);
    error_reason = NULL;
    /* Reading the model leaves free memory of several times its size, which is returned here. */
    malloc_trim(0);
    return failed;
}

int use_grammar(decoder_t *ps, char *name, reason_t *reason) {
    int failed;
    error_reason = reason;
    failed = ps_set_search(ps, name);
    error_reason = NULL;
    return failed;
}

int spans(decoder_t *ps, span_t *out, int max_spans) {
    int n = 0;
    ps_seg_t *seg;
    for (seg = ps_seg_iter(ps); seg != NULL; seg = ps_seg_next(seg)) {
        int32 score, unused;
        if (n == max_spans) {
            ps_seg_free(seg);
            break;
        }
        out[n].word = ps_seg_word(seg);
        ps_seg_frames(seg, &out[n].first, &out[n].last);
        ps_seg_prob(seg, &score, &unused, &unused);
        out[n].score = score;
        n++;
    }
    return n;
}

void get_mean(decoder_t *ps, float *mean) {
    cmn_t *cmn = ps_get_feat(ps)->cmn_struct;
    int i;
    for (i = 0; i < cmn->veclen && i < cepstrumSize; i++)
        mean[i] = cmn->cmn_mean[i];
}

void set_mean(decoder_t *ps, float *mean, int frames) {
    cmn_t *cmn = ps_get_feat(ps)->cmn_struct;
    int i;
    for (i = 0; i < cmn->veclen && i < cepstrumSize; i++) {
        cmn->cmn_mean[i] = mean[i];
        cmn->sum[i] = mean[i] * frames;
    }
    cmn->nframe = frames;
}
