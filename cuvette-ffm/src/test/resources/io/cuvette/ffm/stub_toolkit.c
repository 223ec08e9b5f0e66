/* NVRTC and nvJitLink as a hostile stand-in: what a call does is set by name before it. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))
enum { SETTINGS = 64 };
static struct { char name[48]; long value; } settings[SETTINGS];
static int used;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long open_handles;
static char last[65536];

API void stub_reset(void) { used = 0; open_handles = 0; last[0] = 0; }
API void stub_set(const char *name, long value) {
  snprintf(settings[used].name, sizeof settings[used].name, "%s", name);
  settings[used++].value = value;
}
API long stub_open(void) { return open_handles; }
API const char *stub_last(void) { return last; }

static long get(const char *name, long otherwise) {
  for (int i = used - 1; i >= 0; i--)
    if (strcmp(settings[i].name, name) == 0) return settings[i].value;
  return otherwise;
}
#define FAIL_IF_SET(name) { long status = get(name, 0); if (status != 0) return (int)status; }

struct program { char *source; char *name; int state; char expression[256]; char options[4096]; };

static void opened(long by) {
  pthread_mutex_lock(&lock);
  open_handles += by;
  pthread_mutex_unlock(&lock);
}

/* A text of a size that is set: filled with x where it is longer than the words. */
static int size_of(const char *name, const char *words, size_t *size) {
  *size = (size_t)get(name, (long)strlen(words) + 1);
  return 0;
}
static int fill(const char *name, const char *words, char *out) {
  long size = get(name, (long)strlen(words) + 1);
  memset(out, 'x', (size_t)size);
  memcpy(out, words, strlen(words) < (size_t)size ? strlen(words) : (size_t)size);
  if (!get("unterminated", 0)) out[size - 1] = 0;
  return 0;
}

API const char *nvrtcGetErrorString(int status) {
  return status == 6 ? "NVRTC_ERROR_COMPILATION" : status == 99 ? 0 : "NVRTC_ERROR_OF_STUB";
}
API int nvrtcVersion(int *major, int *minor) {
  FAIL_IF_SET("nvrtcVersion")
  *major = (int)get("major", 13); *minor = (int)get("minor", 1);
  return 0;
}
API int nvrtcGetNumSupportedArchs(int *count) {
  FAIL_IF_SET("nvrtcGetNumSupportedArchs")
  *count = (int)get("architectures", 2);
  return 0;
}
API int nvrtcGetSupportedArchs(int *out) {
  FAIL_IF_SET("nvrtcGetSupportedArchs")
  out[0] = 80;
  if (get("architectures", 2) > 1) out[1] = 90;
  return 0;
}
API int nvrtcCreateProgram(void **out, const char *source, const char *name, int count,
                           const char *const *headers, const char *const *names) {
  FAIL_IF_SET("nvrtcCreateProgram")
  struct program *made = calloc(1, sizeof *made);
  size_t length = strlen(source) + strlen(name) + 64;
  for (int i = 0; i < count; i++) length += strlen(headers[i]) + strlen(names[i]) + 8;
  made->source = calloc(1, length);
  sprintf(made->source, "%s|%s|", name, source);
  for (int i = 0; i < count; i++) {
    strcat(made->source, names[i]); strcat(made->source, "="); strcat(made->source, headers[i]);
    strcat(made->source, ";");
  }
  *out = made;
  opened(1);
  return 0;
}
API int nvrtcDestroyProgram(void **program) {
  struct program *gone = *program;
  free(gone->source); free(gone);
  *program = 0;
  opened(-1);
  FAIL_IF_SET("nvrtcDestroyProgram")
  return 0;
}
API int nvrtcAddNameExpression(struct program *program, const char *expression) {
  FAIL_IF_SET("nvrtcAddNameExpression")
  snprintf(program->expression, sizeof program->expression, "%s", expression);
  return 0;
}
API int nvrtcCompileProgram(struct program *program, int count, const char *const *options) {
  for (int i = 0; i < count; i++) {
    strncat(program->options, options[i], sizeof program->options - strlen(program->options) - 2);
    strcat(program->options, " ");
  }
  if (strstr(program->source, "wrong")) return 6;
  FAIL_IF_SET("nvrtcCompileProgram")
  return 0;
}
API int nvrtcGetProgramLogSize(struct program *program, size_t *size) {
  FAIL_IF_SET("nvrtcGetProgramLogSize")
  return size_of("log", "the log", size);
}
API int nvrtcGetProgramLog(struct program *program, char *out) {
  FAIL_IF_SET("nvrtcGetProgramLog")
  return fill("log", "the log", out);
}
static const char *code(struct program *program, char *room, size_t size) {
  snprintf(room, size, "%s|%s", program->source, program->options);
  return room;
}
#define CODE(name)                                                       \
  API int nvrtcGet##name##Size(struct program *program, size_t *size) {  \
    char room[65536];                                                    \
    FAIL_IF_SET("nvrtcGet" #name "Size")                                 \
    return size_of(#name, code(program, room, sizeof room), size);       \
  }                                                                      \
  API int nvrtcGet##name(struct program *program, char *out) {           \
    char room[65536];                                                    \
    FAIL_IF_SET("nvrtcGet" #name)                                        \
    return fill(#name, code(program, room, sizeof room), out);           \
  }
CODE(PTX)
CODE(CUBIN)
CODE(LTOIR)
API int nvrtcGetLoweredName(struct program *program, const char *expression, const char **out) {
  FAIL_IF_SET("nvrtcGetLoweredName")
  if (strcmp(expression, program->expression) != 0) return 10;
  *out = get("nameless", 0) ? 0 : "_Z7lowered";
  return 0;
}

struct linker { char inputs[8192]; };

#ifndef OLD_LINKER
API int nvJitLinkVersion(unsigned *major, unsigned *minor) {
  FAIL_IF_SET("nvJitLinkVersion")
  *major = (unsigned)get("major", 13); *minor = (unsigned)get("minor", 1);
  return 0;
}
#endif
API int nvJitLinkCreate(void **out, uint32_t count, const char **options) {
  struct linker *made = calloc(1, sizeof *made);
  for (uint32_t i = 0; i < count; i++) { strcat(made->inputs, options[i]); strcat(made->inputs, " "); }
  long status = get("nvJitLinkCreate", 0);
  *out = status != 0 && get("without", 0) ? 0 : made;
  opened(1);
  return (int)status;
}
API int nvJitLinkDestroy(void **linker) {
  free(*linker);
  *linker = 0;
  opened(-1);
  FAIL_IF_SET("nvJitLinkDestroy")
  return 0;
}
API int nvJitLinkAddData(struct linker *linker, int type, const void *data, size_t size, const char *name) {
  FAIL_IF_SET("nvJitLinkAddData")
  sprintf(linker->inputs + strlen(linker->inputs), "%s:%d:%zu:%.*s ", name, type, size, (int)size, (const char *)data);
  return 0;
}
API int nvJitLinkComplete(struct linker *linker) { FAIL_IF_SET("nvJitLinkComplete") return 0; }
#define RESULT(name, words)                                                       \
  API int nvJitLinkGet##name##Size(struct linker *linker, size_t *size) {         \
    FAIL_IF_SET("nvJitLinkGet" #name "Size")                                      \
    return size_of(#name, words, size);                                           \
  }                                                                               \
  API int nvJitLinkGet##name(struct linker *linker, char *out) {                  \
    FAIL_IF_SET("nvJitLinkGet" #name)                                             \
    return fill(#name, words, out);                                               \
  }
RESULT(LinkedCubin, linker->inputs)
RESULT(LinkedPtx, linker->inputs)
RESULT(ErrorLog, "the errors")
RESULT(InfoLog, "the infos")
