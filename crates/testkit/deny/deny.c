/*
 * deny ERRNO NUMBER[,NUMBER...] PROGRAM [ARGUMENT...]: runs a program for which
 * these system calls fail with an error, as under a container's seccomp profile
 * (seccomp(2); the filter is classic BPF over struct seccomp_data).
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define MOST 16

int main(int argc, char **argv)
{
	struct sock_filter code[2 * MOST + 2];
	unsigned short n = 0;
	char *word;

	if (argc < 4) {
		fprintf(stderr, "usage: deny ERRNO NUMBER[,NUMBER...] PROGRAM [ARGUMENT...]\n");
		return 2;
	}
	unsigned int error = (unsigned int)atoi(argv[1]);

	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						 offsetof(struct seccomp_data, nr));
	for (word = strtok(argv[2], ","); word && n < 2 * MOST; word = strtok(NULL, ",")) {
		code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
							 (unsigned int)atoi(word), 0, 1);
		code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
							 SECCOMP_RET_ERRNO | error);
	}
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);

	struct sock_fprog filter = { .len = n, .filter = code };
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) {
		perror("deny: seccomp");
		return 2;
	}
	execvp(argv[3], argv + 3);
	perror(argv[3]);
	return 2;
}
