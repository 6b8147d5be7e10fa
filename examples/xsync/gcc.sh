printf 'int main(void) { return 0; }\n' >p.c
gcc -o p p.c && echo compiled && ./p && echo ran
